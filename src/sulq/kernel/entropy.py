"""The one source of random bits: the operating system's.

There is no seed in the package: noise that can be repeated can be subtracted (T66). It is safe across a fork (T67).
"""

from __future__ import annotations

import os


def random_bytes(count: int) -> bytes:
    """Fresh bytes from the operating system's generator, or an error: never fewer, never others (T68)."""
    drawn = os.urandom(count)
    if len(drawn) != count:
        raise OSError("the operating system gave fewer random bytes than were asked for")
    return drawn
