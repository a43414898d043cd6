"""The clerk from within the event loop: a reply is passed on as it came, and no call that was heard is repeated."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sulq.errors import CuratorError, QuestionError, SetupError
from sulq.service import ipc
from sulq.service.web.clerk_pool import ClerkPool, passed_on

Reply = Callable[[socket.socket, dict], bool]  # whether it goes on listening on this connection


def echoed(sock: socket.socket, frame: dict) -> bool:
    ipc.send(sock, {"ok": {"said": frame["call"]}})
    return True


@contextmanager
def clerk(folder: Path, reply: Reply = echoed) -> Iterator[tuple[str, list[dict]]]:
    """A clerk that answers, and what it heard."""
    path, heard = str(folder / "clerk"), list[dict]()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def talk(sock: socket.socket) -> None:
        with sock:
            try:
                while True:
                    heard.append(ipc.receive_alone(sock))
                    if not reply(sock, heard[-1]):
                        return
            except (EOFError, OSError):
                return

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(sock,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield path, heard
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


async def posted(path: str, *calls: str, settled: bool = False) -> list[bytes]:
    """The replies to calls, one after another; `settled`: each once the connection before is closed."""
    pool = ClerkPool(path)
    found = []
    for call in calls:
        found.append(await pool.post({"call": call}))
        if settled:
            await asyncio.to_thread(select.select, pool._idle, [], [], 30)  # until the other side closed
    pool.close()
    return found


def test_replies_go_to_their_own_calls(tmp_path: Path) -> None:
    """Two hundred at once, through at most as many connections as are allowed, each used again."""

    async def ask(path: str) -> list[bytes]:
        pool = ClerkPool(path)
        found = await asyncio.gather(*(pool.post({"call": str(i)}) for i in range(200)))
        pool.close()
        return found

    with clerk(tmp_path) as (path, heard):
        found = asyncio.run(ask(path))
    assert [json.loads(passed_on(reply))["said"] for reply in found] == [str(i) for i in range(200)]
    assert len(heard) == 200


def test_a_long_reply_is_whole(tmp_path: Path) -> None:
    """Two million characters, in whatever pieces they come."""

    def long(sock: socket.socket, _: dict) -> bool:
        ipc.send(sock, {"ok": {"text": "x" * 2_000_000}})
        return True

    with clerk(tmp_path, long) as (path, _):
        (reply,) = asyncio.run(posted(path, "ask"))
    assert len(json.loads(passed_on(reply))["text"]) == 2_000_000


def test_an_error_is_raised_as_it_was_there() -> None:
    """Its family, code, message and remedy; and what is no reply is the curator's failure."""
    error = QuestionError("bad-question", "No.", "Ask otherwise.")
    with pytest.raises(QuestionError) as found:
        passed_on(json.dumps(ipc.refusal(error), separators=(",", ":")).encode())
    assert (found.value.code, found.value.message, found.value.remedy) == ("bad-question", "No.", "Ask otherwise.")
    for reply in (b"[]", b'{"ok":[]}', b'{"other":1}'):
        with pytest.raises(CuratorError):
            passed_on(reply)


def test_a_call_that_was_heard_is_not_repeated(tmp_path: Path) -> None:
    """The clerk goes away before it answers: the call may have been charged."""
    with clerk(tmp_path, lambda *_: False) as (path, heard):
        with pytest.raises(CuratorError) as found:
            asyncio.run(ClerkPool(path).post({"call": "ask"}))
        assert found.value.code == "unreachable"
        assert len(heard) == 1


def test_a_reply_that_does_not_come_is_not_waited_for_and_its_connection_not_used_again(tmp_path: Path) -> None:
    """The next call has a connection of its own, on which it hears its own reply."""

    def slow(sock: socket.socket, frame: dict) -> bool:
        return frame["call"] == "silent" or echoed(sock, frame)

    async def ask(path: str) -> bytes:
        pool = ClerkPool(path, timeout=0.2)
        with pytest.raises(CuratorError):
            await pool.post({"call": "silent"})
        found = await pool.post({"call": "next"})
        pool.close()
        return found

    with clerk(tmp_path, slow) as (path, _):
        assert passed_on(asyncio.run(ask(path))) == b'{"said":"next"}'


def test_an_idle_connection_whose_other_side_went_away_is_replaced(tmp_path: Path) -> None:
    """Each call is heard once, on a connection of its own."""
    calls = "first", "second", "third"
    with clerk(tmp_path, lambda *call: not echoed(*call)) as (path, heard):
        replies = asyncio.run(posted(path, *calls, settled=True))
    assert [json.loads(passed_on(each))["said"] for each in replies] == [*calls]
    assert len(heard) == 3


def test_nobody_there_is_told_so(tmp_path: Path) -> None:
    """Where nobody listens, the caller may try again."""
    with pytest.raises(SetupError) as found:
        asyncio.run(ClerkPool(str(tmp_path / "nowhere")).post({"call": "ask"}))
    assert found.value.code == "not-ready"
