"""A learner's form, from what the API says of its signature, and the job's parameters from the form that comes back."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sulq.server.console.api import Tree
from sulq.server.console.guard import Fields
from sulq.server.console.refusal import Refusal
from sulq.server.console.visit import rows
from sulq.terms.domain import Bool, Category, Column, Int, Real, Text
from sulq.terms.facts import Facts

CLASSES: Final = 100  # values of a whole number that may be classes
_WHOLE: Final = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter as the page asks for it."""

    name: str
    kind: str  # whole, number, choice, text or flag
    value: str  # its default, as it stands in the field
    words: str
    takes: str
    choices: tuple[str, ...]
    optional: bool
    required: bool

    @property
    def title(self) -> str:
        """The parameter's name in words."""
        return self.name.replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True)
class Form:
    """What a learner's page asks for."""

    name: str
    title: str
    words: str
    kind: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, kind: Tree) -> Form | None:
        """The form of a kind of job; None where it is no learner's."""
        told = kind.get("form")
        if not isinstance(told, Mapping):
            return None
        return cls(
            name=str(kind.get("name", "")),
            title=str(kind.get("title") or ""),
            words=str(told.get("words") or ""),
            kind=str(told.get("kind") or "unsupervised"),
            fields=tuple(_field(item) for item in rows(told, "fields")),
        )

    @property
    def supervised(self) -> bool:
        """Whether there is a column to predict."""
        return self.kind != "unsupervised"

    def columns(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be learned from; free text may not."""
        return [(name, column) for name, column in known.schema.columns if not isinstance(column, Text)]

    def labels(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be predicted: those with classes, or numbers."""
        found = self.columns(known)
        if self.kind == "classifier":
            return [(name, column) for name, column in found if _has_classes(column)]
        return [(name, column) for name, column in found if isinstance(column, (Int, Real))]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's columns and parameters that a sent form names; what was not changed keeps its default."""
        chosen = sent.all("x")
        label = sent.text("y")
        if self.supervised and not label:
            raise _refusal("The column to predict is missing.", "Choose one, then start again.")
        if not [name for name in chosen if name != label]:
            raise _refusal("There are no columns to learn from.", "Tick at least one, then start again.")
        if label in chosen:
            raise _refusal(f"{label} is to be predicted: it cannot be learned from as well.", "Untick it in the list.")
        found: dict[str, object] = {"x": chosen} | ({"y": label} if self.supervised else {})
        for field in self.fields:
            text = sent.get(f"p-{field.name}")
            if field.kind == "flag":
                found[field.name] = text == "yes"
            elif text is not None and text.strip() != field.value:
                found[field.name] = _value(field, text.strip())
        return found


def _field(item: Tree) -> Field:
    usual, choices = item.get("default"), item.get("choices")
    words = str(item.get("help") or item.get("takes") or "")
    return Field(
        name=str(item.get("name", "")),
        kind=str(item.get("kind", "text")),
        value="" if usual is None else "yes" if usual is True else str(usual),
        words=words[:1].upper() + words[1:],
        takes=str(item.get("takes") or ""),
        choices=tuple(str(choice) for choice in choices) if isinstance(choices, list) else (),
        optional=bool(item.get("optional")),
        required=bool(item.get("required")),
    )


def _value(field: Field, text: str) -> object:
    """What a field's text stands for; the API checks it once more."""
    if text in field.choices or (field.kind == "text" and (text or not field.optional)):
        return text
    if not text and field.optional:
        return None
    if field.kind in ("whole", "number") and _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text) if field.kind == "number" else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _refusal(f"{field.title} is {field.takes}.", "Correct it, then start again.")
    return number


def _has_classes(column: Column) -> bool:
    return isinstance(column, (Bool, Category)) or (isinstance(column, Int) and column.hi - column.lo < CLASSES)


def _refusal(message: str, remedy: str) -> Refusal:
    return Refusal(400, "bad-parameter", message, remedy)
