"""Where a request's head ends, and that nobody could read its length in another way: before anything parses it.

A proxy and a server that disagree on where a request ends let a second one through inside it (request smuggling).
h11 takes heads that others read otherwise: both Content-Length and Transfer-Encoding, one length twice, folded
lines, bare line feeds, chunks in HTTP/1.0. It also takes a head of any length that comes in one piece. All of these
are refused here, and the connection is closed.
"""

from __future__ import annotations

import re
from typing import Final

import h11

MAX_HEAD_BYTES: Final = 32 * 2**10  # of a request's line and headers
AMBIGUOUS: Final = 400
TOO_LONG: Final = 431  # Request Header Fields Too Large (RFC 6585)
VERSIONS: Final = (b"HTTP/1.1", b"HTTP/1.0")
_END: Final = re.compile(rb"\n\r?\n")  # as h11 finds it, which ends a line at a bare line feed too


class RequestConnection(h11.Connection):
    """The server's side of a connection; `refusal` is the status of a head that is taken no further."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.refusal = AMBIGUOUS

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """The next event; a head is looked at before it is parsed."""
        if self.their_state is h11.IDLE:
            status = refused_status(self.trailing_data[0])
            if status is not None:
                self.refusal = status
                raise h11.RemoteProtocolError("a head that is refused", error_status_hint=status)
        return super().next_event()

    @property
    def in_head(self) -> bool:
        """Whether a part of a head is here, and its rest is not."""
        return self.their_state is h11.IDLE and bool(self.trailing_data[0])


def refused_status(received: bytes) -> int | None:
    """The status that refuses what begins with a head; None where it may be parsed, or is not whole yet."""
    end = _END.search(received)
    if end is None:
        return TOO_LONG if len(received) > MAX_HEAD_BYTES else None
    if end.end() > MAX_HEAD_BYTES:
        return TOO_LONG
    return None if _plain(received[: end.end()]) else AMBIGUOUS


def _plain(head: bytes) -> bool:
    """Whether every reader finds the same request in a whole head, and the same end of its body."""
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r") != head.count(b"\r\n"):
        return False
    line, *fields = head[:-4].split(b"\r\n")
    version = line.rpartition(b" ")[2]
    if version not in VERSIONS or any(field[:1] in b" \t" for field in fields):
        return False
    named = [(name.lower(), value.strip(b" \t")) for name, _, value in (field.partition(b":") for field in fields)]
    lengths = [value for name, value in named if name == b"content-length"]
    codings = [value for name, value in named if name == b"transfer-encoding"]
    if codings:
        return not lengths and len(codings) == 1 and version == VERSIONS[0]
    return len(lengths) <= 1 and all(value.isdigit() for value in lengths)
