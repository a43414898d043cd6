"""A model as the console shows it: its tables, its tree, a drawing where one helps, what it cost and whom it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sulq.language.privacy import Budget, Loss, Unit
from sulq.service.console.api import Tree
from sulq.service.console.views import words
from sulq.service.console.views.sheet import Sheet, sheet_of
from sulq.service.console.visit import rows

LONGEST: Final = 100_000  # characters of a tree


@dataclass(frozen=True, slots=True)
class Learned:
    """A model that a job found."""

    learner: str
    tree: str  # how it draws itself, where it does
    sheets: tuple[Sheet, ...]
    spent: Loss | Budget | None
    unit: Unit | None
    guarantee: str

    @classmethod
    def of(cls, result: Tree) -> Learned | None:
        """Read a job's result; None where it is no model."""
        model = result.get("model")
        if not isinstance(model, Mapping):
            return None
        guarantee = model.get("guarantee")
        told: Tree = guarantee if isinstance(guarantee, Mapping) else {}
        return cls(
            learner=str(model.get("learner", "")),
            tree=str(result.get("text") or "")[:LONGEST],
            sheets=tuple(sheet_of(item) for item in rows(result, "tables")),
            spent=words.loss(model.get("spent")),
            unit=words.unit(told.get("unit")),
            guarantee=str(told.get("kind") or "dp"),
        )
