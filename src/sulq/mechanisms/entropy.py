"""The one source of random bits for sulq's own samplers, and what OpenDP's draw on.

There is no seed, here or anywhere in the package: noise that can be repeated
can be subtracted (T66). Both sources are the operating system's, directly or
through OpenSSL, and both are safe across a fork (T67).
"""

from __future__ import annotations

import functools
import mmap
import os
from importlib import metadata
from pathlib import Path
from typing import Final

import opendp

# OpenDP built with `use-openssl` draws by openssl::rand::rand_priv_bytes; a build
# without it falls back to a generator its own source calls not secure.
_MARKS: Final = (b"openssl4rand15rand_priv_bytes", b"RAND_priv_bytes")
_SUFFIXES: Final = (".so", ".dylib", ".pyd", ".dll")


def random_bytes(count: int) -> bytes:
    """Fresh bytes from the operating system's generator, or an error: never fewer, never others (T68)."""
    drawn = os.urandom(count)
    if len(drawn) != count:
        raise OSError("the operating system gave fewer random bytes than were asked for")
    return drawn


@functools.cache
def opendp_draws_from_openssl() -> bool:
    """Whether the installed OpenDP library contains OpenSSL's private generator (T66)."""
    folder = Path(os.environ.get("OPENDP_LIB_DIR", Path(opendp.__file__).parent / "lib"))
    return any(_contains(path, _MARKS) for path in folder.iterdir() if path.suffix in _SUFFIXES)


def source() -> str:
    """Where random bits come from, for `sulq --version`."""
    through = "OpenSSL" if opendp_draws_from_openssl() else "an UNKNOWN generator"
    return f"os.urandom; OpenDP {metadata.version('opendp')} through {through}"


def _contains(path: Path, marks: tuple[bytes, ...]) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as binary:
        return any(binary.find(mark) >= 0 for mark in marks)
