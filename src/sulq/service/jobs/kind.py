"""A kind of job: the body that starts it (strict types, off a signature's form), its steps, and how they are paced.

A learner or a release runs in a thread of its own (`Stepwise`), which goes on from one question to the
next only when the job does. So a job that was ended asks nothing more.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, create_model

from sulq.answers.oracle import Progress
from sulq.errors import CuratorError
from sulq.forms import signature
from sulq.forms.signature import MAX_ITEMS, Form
from sulq.language.domain import MAX_NAME_LENGTH
from sulq.service.web.requests import Body

if TYPE_CHECKING:
    from sulq.api.named_asks import NamedAsks

T = TypeVar("T")
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
Number = Annotated[float, Field(allow_inf_nan=False)]


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


def body_of(asks: Form, base: type[Body]) -> type[Body]:
    """What a job of this form is asked for, beside what every job of its kind is."""
    fields: dict[str, Any] = {field.name: _typed(field) for field in asks.fields}
    return create_model(asks.name, __base__=base, __doc__=f"{asks.title}.", **fields)


def chosen(asks: Form, body: Body) -> dict[str, Any]:
    """The parameters that a body names; the others keep their defaults."""
    return {field.name: getattr(body, field.name) for field in asks.fields if field.name in body.model_fields_set}


def _typed(field: signature.Field) -> Any:  # noqa: ANN401 - a type and its default, as pydantic takes them
    """A parameter's type and default; strict, as all bodies are."""
    kinds: dict[str, Any] = {
        "whole": int,
        "number": int | Number,  # a whole number stays one
        "flag": bool,
        "text": Annotated[str, Field(max_length=field.longest)],
        "column": Name,
    }
    kind: Any = kinds.get(field.kind)
    for _ in range(field.depth):
        kind = Annotated[list[kind], Field(max_length=MAX_ITEMS)]
    options: list[Any] = [] if kind is None else [kind]
    if field.choices:
        options.append(Literal[field.choices])
    if field.optional:
        options.append(None)
    usual: Any = ... if field.required else field.default
    return reduce(or_, options), Field(usual, description=field.help or field.takes)


class Ended(BaseException):
    """The job was ended: no further question may be asked. Not an error, so that no learner can catch it as one."""


class Stepwise(Generic[T]):
    """Work that tells its progress, and takes each step only when the job comes for the next."""

    def __init__(self, work: Callable[[Progress], T]) -> None:
        self.total = 0
        self.found: T
        self._steps: queue.SimpleQueue[JobStep | Exception | None] = queue.SimpleQueue()
        self._next = threading.Semaphore(0)
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def steps(self) -> Iterator[JobStep]:
        """The steps of the work, then `found` is there; whoever stops asking ends it before its next question."""
        self._thread.start()
        try:
            while (found := self._steps.get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
                self._next.release()
        finally:
            self._ended = True
            self._next.release()

    def _run(self, work: Callable[[Progress], T]) -> None:
        try:
            self.found = work(self._tell)
            self._steps.put(None)
        except Ended:
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the job runs
            self._steps.put(error)
        except BaseException:  # noqa: BLE001 - a job must end, whatever ends its work
            self._steps.put(CuratorError("engine-failed", "The work was broken off."))

    def _tell(self, done: int, planned: int) -> None:
        self.total = planned
        self._steps.put(JobStep(done, planned, {}))
        self._next.acquire()
        if self._ended:
            raise Ended
