"""The form of a kind of job, from what the API says of its signature; learners and releases add what is their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from sulq.language.domain import Column, Text
from sulq.language.facts import Facts
from sulq.service.console.api import Tree
from sulq.service.console.forms.field import Field, chosen, fields_of
from sulq.service.console.guard import Fields


@dataclass(frozen=True, slots=True)
class Form:
    """What a page asks for; `kinds` are those of forms that its own page shows."""

    kinds: ClassVar[tuple[str, ...]] = ()
    noun: ClassVar[str] = "form"
    name: str
    title: str
    words: str
    kind: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, kind: Tree) -> Self | None:
        """The form of a kind of job; None where it is another page's."""
        told = kind.get("form")
        if not isinstance(told, Mapping) or told.get("kind") not in cls.kinds:
            return None
        return cls(
            name=str(kind.get("name", "")),
            title=str(kind.get("title") or ""),
            words=str(told.get("words") or "").replace("`", ""),  # marks of code are for terminals
            kind=str(told["kind"]),
            fields=fields_of(told),
        )

    def columns(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be named; free text may not."""
        return [(name, column) for name, column in known.schema.columns if not isinstance(column, Text)]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's parameters that a sent form names; what was not changed keeps its default."""
        return chosen(self.fields, sent)
