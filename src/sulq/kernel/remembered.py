"""Certificates that were worked out already, each asker's apart.

A certificate depends on text and facts alone, but whether it is known shows in the time that an ask takes: remembered
for all, it would tell one analyst what another has asked (T39).
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar, cast

TEXTS: Final = 128  # of one asker's, those it used last
ASKERS: Final = 64  # likewise

T = TypeVar("T")

_asker: ContextVar[str] = ContextVar("asker", default="")
_known: OrderedDict[str, Callable[..., object]] = OrderedDict()
_lock = threading.Lock()


@contextmanager
def asked_by(name: str) -> Iterator[None]:
    """Whose certificates are looked up, and added to, by what this thread does meanwhile."""
    before = _asker.set(name)
    try:
        yield
    finally:
        _asker.reset(before)


def remembered(make: Callable[..., T], *given: Hashable) -> T:
    """What is made of texts and facts, or remembered of them; a refusal is worked out anew."""
    name = _asker.get()
    with _lock:
        if name not in _known:
            _known[name] = functools.lru_cache(TEXTS)(_made)
        _known.move_to_end(name)
        found = _known[name]
        if len(_known) > ASKERS:
            _known.popitem(last=False)
    return cast("T", found(make, *given))


def _made(make: Callable[..., object], *given: Hashable) -> object:
    return make(*given)
