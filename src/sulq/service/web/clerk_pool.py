"""The clerk from within the event loop: a call takes no thread, and its reply is passed on as the clerk wrote it.

As with `ipc.SocketPool`, a call that was not sent whole was not heard, and is sent again over a new connection; one
that was sent is never repeated: it may have been charged.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool

from sulq.answers import wire
from sulq.errors import CuratorError
from sulq.service import ipc

MAX_CALLS: Final = 64  # under way at one time; the rest wait
READ_BYTES: Final = 2**18
OK: Final = b'{"ok":{'
SECONDS: Final = b',"seconds":'  # of the clerk's processor, last in a reply
TOOK_FIELD: Final = f',"{ipc.TOOK}":'.encode()
Post = Callable[[Mapping[str, object]], Awaitable[bytes]]


def post_of(call: Callable[[Mapping[str, object]], Mapping[str, object]]) -> Post:
    """A clerk that is called in a thread, as one that is not."""

    async def post(obj: Mapping[str, object]) -> bytes:
        reply = await run_in_threadpool(call, obj)
        return json.dumps(reply, separators=(",", ":"), allow_nan=False).encode()

    return post


def timed(reply: bytes) -> tuple[bytes, float]:
    """A reply without what the clerk says it took, and that."""
    found, mark, seconds = reply.rpartition(SECONDS)
    try:
        return (found + b"}", float(seconds[:-1])) if mark else (reply, 0.0)
    except ValueError:  # it stood inside the reply
        return reply, 0.0


def seconds_of(reply: Mapping[str, object]) -> float:
    """What the clerk says that a call took."""
    told = reply.get("seconds")
    return told if isinstance(told, float) else 0.0


def passed_on(reply: bytes) -> bytes:
    """What a reply gives, as JSON; or its error, raised here as it was raised there."""
    if reply.startswith(OK):
        return reply[len(OK) - 1 : -1]
    tree = wire.strict(reply)
    ipc.opened(tree if isinstance(tree, dict) else {})
    raise CuratorError("engine-failed", "The curator's reply could not be read.")


def timed_reply(reply: bytes) -> tuple[bytes, float]:
    """A reply to a call that asked for times, without them; and the seconds that workers took."""
    head, mark, tail = reply.rpartition(TOOK_FIELD)  # no text in JSON holds it, as its quotes would be escaped there
    try:
        return (head + b"}", float(tail[:-1])) if mark else (reply, 0.0)
    except ValueError:  # it belongs to something else in the reply
        return reply, 0.0


class ClerkPool:
    """Connections to the clerk's socket, each used by one call at a time; for one event loop."""

    def __init__(self, path: str, *, timeout: float = 120.0) -> None:
        self._path = path
        self._timeout = timeout
        self._idle: list[socket.socket] = []
        self._places = asyncio.Semaphore(MAX_CALLS)

    async def post(self, obj: Mapping[str, object]) -> bytes:
        """Send one frame and wait for its reply, of which nothing is read but its length."""
        frame = ipc.framed(obj)
        async with self._places:
            sock = await self._sent(frame)
            try:
                async with asyncio.timeout(self._timeout):
                    reply = await _reply(sock)
            except (OSError, EOFError):  # a timeout too
                sock.close()
                raise CuratorError("unreachable", "The curator stopped before it answered.") from None
            except BaseException:
                sock.close()  # its reply must not be taken for the next call's
                raise
            self._idle.append(sock)
            return reply

    async def _sent(self, frame: bytes) -> socket.socket:
        """A connection over which the frame was sent whole."""
        loop = asyncio.get_running_loop()
        while True:
            sock = self._taken()
            fresh = sock is None
            sock = await self._connected() if sock is None else sock
            try:
                async with asyncio.timeout(self._timeout):
                    await loop.sock_sendall(sock, frame)
            except OSError:
                sock.close()
                if fresh:
                    raise ipc.away() from None
            except BaseException:
                sock.close()
                raise
            else:
                return sock

    def _taken(self) -> socket.socket | None:
        """An idle connection whose other side is still there and says nothing."""
        while self._idle:
            sock = self._idle.pop()
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            if not poll.poll(0):
                return sock
            sock.close()
        return None

    async def _connected(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, self._path)
        except OSError:
            sock.close()
            raise ipc.away() from None
        return sock

    def close(self) -> None:
        """Let go of the idle connections."""
        while self._idle:
            self._idle.pop().close()


async def _reply(sock: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    found = bytearray()
    size = ipc.LENGTH_BYTES
    while len(found) < size:
        part = await loop.sock_recv(sock, READ_BYTES)
        if not part:
            raise EOFError
        found += part
        if size == ipc.LENGTH_BYTES <= len(found):
            size += int.from_bytes(found[: ipc.LENGTH_BYTES], "big")
            if not ipc.LENGTH_BYTES < size <= ipc.LENGTH_BYTES + ipc.MAX_FRAME_BYTES:
                raise EOFError
    if len(found) > size:
        raise EOFError
    return bytes(found[ipc.LENGTH_BYTES :])
