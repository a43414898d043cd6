"""A kind of job, the steps it takes, and the body it is started with: strict types, from the form of a signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from sulq.api.named_asks import NamedAsks
from sulq.forms import signature
from sulq.forms.signature import MAX_ITEMS, Form
from sulq.language.domain import MAX_NAME_LENGTH
from sulq.service.web.requests import Body

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
