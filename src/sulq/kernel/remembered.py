"""Certificates that were worked out already, each asker's apart.

A certificate depends on text and facts alone, but whether it is known shows in the time that an ask takes: remembered
for all, it would tell one analyst what another has asked (T39).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

TEXTS: Final = 128  # of one asker's, those it used last
ASKERS: Final = 64  # likewise

T = TypeVar("T")

_asker: ContextVar[str] = ContextVar("asker", default="")


@contextmanager
def asked_by(name: str) -> Iterator[None]:
    """Whose certificates are looked up, and added to, by what this thread does meanwhile."""
    before = _asker.set(name)
    try:
        yield
    finally:
        _asker.reset(before)


@functools.lru_cache(ASKERS)
def _known(asker: str) -> Callable[..., Any]:  # noqa: ARG001 - whose they are
    return functools.lru_cache(TEXTS)(lambda make, *given: make(*given))


def remembered(make: Callable[..., T], *given: Hashable) -> T:
    """What is made of texts and facts, or remembered of them; a refusal is worked out anew."""
    return cast("T", _known(_asker.get())(make, *given))
