"""A learner's form, from what the API says of its signature, and the job's parameters from the form that comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from sulq.language.domain import Bool, Category, Column, Int, Real
from sulq.language.facts import Facts
from sulq.service.console.forms import form
from sulq.service.console.forms.field import chosen, mistake
from sulq.service.console.guard import Fields

CLASSES: Final = 100  # values of a whole number that may be classes


@dataclass(frozen=True, slots=True)
class Form(form.Form):
    """What a learner's page asks for."""

    kinds: ClassVar[tuple[str, ...]] = ("unsupervised", "classifier", "regressor")
    noun: ClassVar[str] = "learner"

    @property
    def supervised(self) -> bool:
        """Whether there is a column to predict."""
        return self.kind != "unsupervised"

    def labels(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be predicted: those with classes, or numbers."""
        found = self.columns(known)
        if self.kind == "classifier":
            return [(name, column) for name, column in found if _has_classes(column)]
        return [(name, column) for name, column in found if isinstance(column, (Int, Real))]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's columns and parameters that a sent form names; what was not changed keeps its default."""
        ticked = sent.all("x")
        label = sent.text("y")
        if self.supervised and not label:
            raise mistake("The column to predict is missing.", "Choose one, then start again.")
        if not [name for name in ticked if name != label]:
            raise mistake("There are no columns to learn from.", "Tick at least one, then start again.")
        if label in ticked:
            raise mistake(f"{label} is to be predicted: it cannot be learned from as well.", "Untick it in the list.")
        found: dict[str, object] = {"x": ticked} | ({"y": label} if self.supervised else {})
        return found | chosen(self.fields, sent)


def _has_classes(column: Column) -> bool:
    return isinstance(column, (Bool, Category)) or (isinstance(column, Int) and column.hi - column.lo < CLASSES)
