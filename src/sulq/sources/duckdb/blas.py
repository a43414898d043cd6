"""One BLAS thread while batches are folded in parallel: two layers of threads on the same cores collapse."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

_lock = threading.Lock()
_inside = 0
_before = 1


@functools.cache
def _switches() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """The thread count of the OpenBLAS that NumPy carries; None for another BLAS, which is left alone."""
    for library in sorted((Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*.so*")):
        with contextlib.suppress(OSError, AttributeError):
            blas = ctypes.CDLL(str(library))
            return blas.scipy_openblas_get_num_threads64_, blas.scipy_openblas_set_num_threads64_
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[bool]:
    """Hold BLAS to one thread; says whether that could be done. Several may hold it at once; the last lets go."""
    global _inside, _before  # noqa: PLW0603 - the setting itself is one for the whole process
    switches = _switches()
    if switches is None:
        yield False
        return
    get, put = switches
    with _lock:
        if _inside == 0:
            _before = get()
            put(1)
        _inside += 1
    try:
        yield True
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                put(_before)
