"""Frames between processes: whole or not at all, strict, bounded; a call that was heard is never repeated."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError
from sulq.service import ipc
from sulq.service.ipc import SocketPool


def pair() -> tuple[socket.socket, socket.socket]:
    left, right = socket.socketpair()
    left.settimeout(60)
    right.settimeout(60)
    return left, right


@pytest.mark.parametrize("obj", [{}, {"a": [1, 2.5, None, "\u2028é"]}, {"text": "x" * 3_000_000}])
def test_a_frame_comes_out_as_it_went_in(obj: dict) -> None:
    """Any JSON object passes, however long."""
    left, right = pair()
    sender = threading.Thread(target=ipc.send, args=(left, obj))
    sender.start()
    assert ipc.receive(right) == obj
    sender.join()
    left.close()
    with pytest.raises(EOFError):
        ipc.receive(right)
    right.close()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b'{"a":1,"a":2}', QuestionError),
        (b'{"a":NaN}', QuestionError),
        (b'{"a":1e999}', QuestionError),
        (b"[1]", ConnectionError),
        (b"\xff\xfe{}", QuestionError),
        (b"{" * 5000, QuestionError),
    ],
)
def test_what_has_not_one_meaning_is_no_frame_T51(text: bytes, error: type[Exception]) -> None:
    """Duplicate keys, NaN, numbers out of range, other encodings and bottomless nesting are refused."""
    left, right = pair()
    left.sendall(len(text).to_bytes(4, "big") + text)
    with pytest.raises(error):
        ipc.receive(right)
    left.close()
    right.close()


def test_a_frame_that_is_too_long_or_cut_short_is_refused() -> None:
    """A length beyond the limit is not even waited for; half a frame is no frame."""
    for sent in ((ipc.MAX_FRAME_BYTES + 1).to_bytes(4, "big"), b"\x00\x00\x00\x00", b"\x00\x00\x00\x09{}", b"\x00\x00"):
        left, right = pair()
        left.sendall(sent)
        left.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            ipc.receive(right)
        left.close()
        right.close()
    with pytest.raises(QuestionError):
        ipc.send(left, {"a": "x" * (ipc.MAX_FRAME_BYTES + 1)})


def test_errors_cross_as_themselves() -> None:
    """An error is raised at the far end with the same family, code, message and remedy; an unknown one as a failure."""
    for error in (AccessDenied("not-found", "No.", "Look."), CuratorError("engine-failed", "Broken.")):
        with pytest.raises(type(error)) as found:
            ipc.opened(ipc.refusal(error))
        assert found.value.args == error.args
    for reply in ({"error": {"kind": "SystemExit", "code": "x"}}, {"error": {}}, {"ok": 1}, {}):
        with pytest.raises(CuratorError):
            ipc.opened(reply)


class Echo:
    """A server that echoes, counts what it heard, and can leave."""

    def __init__(self, path: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.heard: list[dict] = []
        self.open: list[socket.socket] = []
        self.silent = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(sock)
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        try:
            while True:
                frame = ipc.receive(sock)
                self.heard.append(frame)
                if self.silent:
                    sock.close()
                    return
                ipc.send(sock, {"ok": frame})
        except (OSError, EOFError):
            pass

    def hang_up(self) -> None:
        for sock in self.open:
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self.open.clear()


def test_a_line_reconnects_and_repeats_nothing_that_was_heard(tmp_path: Path) -> None:
    """A connection that was closed is replaced unnoticed; a reply that was lost is an error, and the call went once."""
    server = Echo(tmp_path / "s")
    line = SocketPool(tmp_path / "s", timeout=60)
    assert line.call({"n": 1}) == {"ok": {"n": 1}}
    server.hang_up()
    assert line.call({"n": 2}) == {"ok": {"n": 2}}
    server.silent = True
    with pytest.raises(CuratorError) as lost:
        line.call({"n": 3})
    assert lost.value.code == "unreachable"
    assert server.heard == [{"n": 1}, {"n": 2}, {"n": 3}]
    line.close()
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()
    (tmp_path / "s").unlink()
    with pytest.raises(SetupError) as away:
        SocketPool(tmp_path / "s").call({})
    assert away.value.code == "not-ready"


def test_threads_share_a_line(tmp_path: Path) -> None:
    """Each call has a connection of its own while it lasts: no thread is given another's reply."""
    server = Echo(tmp_path / "s")
    line = SocketPool(tmp_path / "s", timeout=60)
    wrong: list[int] = []

    def work(number: int) -> None:
        asked = [{"n": number, "i": i} for i in range(50)]
        wrong.extend(number for frame in asked if line.call(frame) != {"ok": frame})

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert wrong == []
    assert len(server.heard) == 400
    line.close()
    server.hang_up()
    server.listener.close()


def framed(*objs: dict) -> bytes:
    return b"".join(map(ipc.framed, objs))


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 17])
def test_a_frame_that_is_alone_is_read_in_whatever_pieces_it_comes(cut: int) -> None:
    """Its head may be torn too; a long one is read to its end."""
    for obj in ({"a": "b" * 20}, {"text": "x" * 300_000}):
        left, right = pair()
        whole = framed(obj)

        def send(left: socket.socket = left, whole: bytes = whole) -> None:
            left.sendall(whole[:cut])
            time.sleep(0.01)
            left.sendall(whole[cut:])

        sender = threading.Thread(target=send)
        sender.start()
        assert ipc.receive_alone(right) == obj
        sender.join()
        left.close()
        with pytest.raises(EOFError):
            ipc.receive_alone(right)
        right.close()


@pytest.mark.parametrize(
    "raw",
    [
        framed({"a": 1})[:-1],
        framed({"a": 1})[:3],
        framed({"a": 1}, {"b": 2}),
        bytes(4),
        (ipc.MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
        (2).to_bytes(4, "big") + b"[]",
    ],
    ids=["cut", "half a head", "two", "empty", "long", "no object"],
)
def test_what_is_not_one_whole_frame_is_none(raw: bytes) -> None:
    """A reply behind another would be taken for the next call's."""
    left, right = pair()
    left.sendall(raw)
    left.close()
    with right, pytest.raises(ConnectionError):
        ipc.receive_alone(right)
