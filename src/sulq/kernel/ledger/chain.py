"""The hash chain: each entry's hash covers its text, its place and all entries before it (T47)."""

from __future__ import annotations

import hashlib
import json
from typing import Final, NamedTuple

ORIGIN: Final = bytes(32)  # what the first entry is chained to


class Row(NamedTuple):
    """One entry as it stands in the file."""

    seq: int
    body: str
    hash: bytes


def canonical(body: object) -> str:
    """Write a body one way only, so that equal entries have equal bytes."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def link(previous: bytes, seq: int, body: str) -> bytes:
    """Chain an entry to the one before; the two first parts have fixed lengths, so no two entries read alike."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + body.encode()).digest()
