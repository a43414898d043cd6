"""What a cookie says, written so that the server alone can read or write it.

A browser sends its cookies to every port of a host. What a neighbour at another
port receives here is of no use to it: the token inside is hidden, and no API
takes the cookie for a token (T80).

The text is covered by a stream that only the key's holder can work out
(SHAKE-256 of the key and a fresh nonce, a keyed sponge), then marked
(HMAC-SHA-256 of nonce and covered text, under a key of its own): the mark is
checked before anything is uncovered.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

NONCE_BYTES: Final = 16
MARK_BYTES: Final = 32
MAX_COOKIE_CHARACTERS: Final = 1024  # of a cookie's value


class Wrap:
    """One key's way to close and open texts; every web process of a server has the same key."""

    def __init__(self, key: bytes) -> None:
        self._cover = hmac.digest(key, b"sulq console cookie: cover", "sha256")
        self._mark = hmac.digest(key, b"sulq console cookie: mark", "sha256")

    def closed(self, text: str) -> str:
        """A text as a cookie's value, another each time."""
        nonce = os.urandom(NONCE_BYTES)
        covered = nonce + self._covered(nonce, text.encode())
        return base64.urlsafe_b64encode(covered + self._marked(covered)).rstrip(b"=").decode()

    def opened(self, value: str) -> str | None:
        """The text of a value that this key made; None for any other."""
        if len(value) > MAX_COOKIE_CHARACTERS or not value.isascii():
            return None
        try:
            raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except (binascii.Error, ValueError):
            return None
        covered, mark = raw[:-MARK_BYTES], raw[-MARK_BYTES:]
        if len(covered) < NONCE_BYTES or not hmac.compare_digest(mark, self._marked(covered)):
            return None
        return self._covered(covered[:NONCE_BYTES], covered[NONCE_BYTES:]).decode()

    def _covered(self, nonce: bytes, text: bytes) -> bytes:
        stream = hashlib.shake_256(self._cover + nonce).digest(len(text))
        return bytes(a ^ b for a, b in zip(text, stream, strict=True))

    def _marked(self, covered: bytes) -> bytes:
        return hmac.digest(self._mark, covered, "sha256")
