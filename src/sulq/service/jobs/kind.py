"""A kind of job, and the steps it is seen to take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sulq.api.named_asks import NamedAsks
from sulq.service.web.requests import Body


@dataclass(frozen=True, slots=True)
class JobStep:
    """How far a job is, and what it has found so far."""

    done: int
    total: int
    result: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: its name, what it does, the fields of its parameters, and the work itself.

    `form` is what a page may ask for them by, where there is more to say than the fields' JSON schema has.
    """

    name: str
    title: str
    parameters: type[Body]
    run: Callable[[NamedAsks, Any], Iterator[JobStep]]
    form: Mapping[str, object] | None = None
