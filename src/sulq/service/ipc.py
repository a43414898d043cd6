"""Messages between the server's processes: one JSON object a frame, over a Unix socket.

A frame is four bytes of length, most significant first, and that many bytes of
strict JSON (answers.wire.strict): nothing that crosses a process boundary is ever
code. Frames longer than MAX_FRAME_BYTES are refused before they are read.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from sulq.answers import wire
from sulq.errors import CODES, FAMILIES, CuratorError, QuestionError, SetupError, SulqError

MAX_FRAME_BYTES: Final = 64 * 2**20
LENGTH_BYTES: Final = 4
READ_BYTES: Final = 2**16
TOOK: Final = "took"  # the last field of a reply whose call asked for times: the seconds that workers took
Frame = dict[str, object]
_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)  # made once: json.dumps makes one each time


def framed(obj: Mapping[str, object]) -> bytes:
    """One frame."""
    body = _JSON.encode(obj).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise QuestionError("too-large", "A message between the curator's parts is too long.")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def send(sock: socket.socket, obj: Mapping[str, object]) -> None:
    """Write one frame."""
    sock.sendall(framed(obj))


def receive(sock: socket.socket) -> Frame:
    """Read one frame; EOFError where the other side closed between frames, ConnectionError where within one."""
    head = _exactly(sock, LENGTH_BYTES)
    if head is None:
        raise EOFError
    size = int.from_bytes(head, "big")
    body = _exactly(sock, size) if 0 < size <= MAX_FRAME_BYTES else None
    if body is None:
        raise ConnectionError("a frame is too long, empty or cut short")
    return _read(body)


def receive_alone(sock: socket.socket) -> Frame:
    """As `receive`, where whoever sends waits for a reply to each frame: mostly with one look at the socket."""
    found = sock.recv(READ_BYTES)
    if not found:
        raise EOFError
    if len(found) < LENGTH_BYTES:
        found += _exactly(sock, LENGTH_BYTES - len(found)) or b""
    size = LENGTH_BYTES + int.from_bytes(found[:LENGTH_BYTES], "big")
    if LENGTH_BYTES <= len(found) < size <= LENGTH_BYTES + MAX_FRAME_BYTES:
        found += _exactly(sock, size - len(found)) or b""
    if len(found) != size or size == LENGTH_BYTES:
        raise ConnectionError("a frame is too long, empty, cut short, or one of several")
    return _read(found[LENGTH_BYTES:])


def _read(body: bytes) -> Frame:
    tree = wire.strict(body)
    if not isinstance(tree, dict):
        raise ConnectionError("a frame is not an object")
    return cast("Frame", tree)


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where there are none at all, an error where there are some."""
    found = bytearray()
    while len(found) < size:
        part = sock.recv(min(size - len(found), 2**20))
        if not part:
            if found:
                raise ConnectionError("a frame is cut short")
            return None
        found += part
    return bytes(found)


def refusal(error: SulqError) -> Frame:
    """An error as it stands in a reply."""
    told = {"kind": type(error).__name__, "code": error.code, "message": error.message, "remedy": error.remedy}
    return {"error": told}


def opened(reply: Mapping[str, object]) -> Frame:
    """What a reply gives, or its error, raised here as it was raised there."""
    told = reply.get("error")
    if isinstance(told, dict):
        kind, code = told.get("kind"), told.get("code")
        family = next((family for family in FAMILIES if family.__name__ == kind), CuratorError)
        known = code if isinstance(code, str) and code in CODES else "engine-failed"
        raise family(known, str(told.get("message", "")), str(told.get("remedy", "")))
    found = reply.get("ok")
    if not isinstance(found, dict):
        raise CuratorError("engine-failed", "The curator's reply could not be read.")
    return cast("Frame", found)


class SocketPool:
    """Calls over connections to one Unix socket, which threads may share; each is used by one call at a time.

    A connection whose other side went away is replaced. A call that was not sent
    whole was not heard, and is sent again over a new connection; one that was sent
    is never repeated: it may have been charged.
    """

    def __init__(self, path: str | Path, *, timeout: float = 120.0) -> None:
        self._path = str(path)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._closed = False

    def ask(
        self,
        call: str,
        *,
        token: str | None = None,
        dataset: str | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Frame:
        """One call of the clerk's table: what it gives, or the error it raises."""
        return opened(self.call({"call": call, "token": token, "dataset": dataset, "body": dict(body or {})}))

    def call(self, obj: Mapping[str, object]) -> Frame:
        """Send one frame and wait for its reply."""
        with self._connection(obj) as sock:
            try:
                return receive_alone(sock)
            except (OSError, EOFError, QuestionError):
                sock.close()
        raise CuratorError("unreachable", "The curator stopped before it answered.")

    @contextlib.contextmanager
    def _connection(self, obj: Mapping[str, object]) -> Iterator[socket.socket]:
        """A connection over which the frame was sent whole."""
        sock = self._taken()
        while True:
            fresh = sock is None
            sock = self._connected() if sock is None else sock
            try:
                send(sock, obj)
                break
            except OSError:
                sock.close()
                sock = None
                if fresh:
                    raise away() from None
            except BaseException:
                sock.close()
                raise
        try:
            yield sock
        except BaseException:
            sock.close()  # an interrupted call's reply must not be taken for the next one's
            raise
        with self._lock:
            if sock.fileno() >= 0 and not self._closed:
                self._idle.append(sock)
                return
        sock.close()

    def _taken(self) -> socket.socket | None:
        """An idle connection whose other side is still there."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                sock = self._idle.pop()
            if not _spoke(sock):
                return sock
            sock.close()

    def _connected(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(self._timeout)
        try:
            sock.connect(self._path)
        except OSError:
            sock.close()
            raise away() from None
        return sock

    def close(self) -> None:
        """Let go of the idle connections; those in use close as their calls end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for sock in idle:
            sock.close()


def _spoke(sock: socket.socket) -> bool:
    """Whether there is something to read while nothing was asked: the other side closed, or is out of step."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def away() -> SetupError:
    """What a caller hears where nobody listens."""
    return SetupError("not-ready", "The curator is not reachable at the moment.", "Try again in a moment.")
