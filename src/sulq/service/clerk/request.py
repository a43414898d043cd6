"""A call as its function gets it: who calls, about which dataset, with what; already let in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from sulq.answers import wire
from sulq.answers.wire import LOSSES
from sulq.errors import QuestionError
from sulq.language.privacy import Loss
from sulq.language.question import QUESTIONS, Question
from sulq.service.clerk.access import Principal
from sulq.service.clerk.open_dataset import OpenDataset

SEES_ALL: Final = frozenset({"owner", "auditor"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One call: whose token it carries and the dataset it is about, wherever the table of calls asks for them."""

    who: Principal
    held: OpenDataset
    body: Mapping[str, object]

    @property
    def whose(self) -> str | None:
        """Whose part of a dataset's ledger this principal may read; None for all of it."""
        return None if self.who.role in SEES_ALL else self.who.name

    def only(self, *names: str) -> None:
        """Refuse fields that this call does not have: a misspelt one would be silently left out."""
        for name in self.body:
            if name not in names:
                raise QuestionError("bad-request", f"This call has no field {name[:40]!r}.")

    def text(self, name: str) -> str:
        """A field that is text."""
        return self._of(str, name, "text")

    def optional(self, name: str) -> str | None:
        """A field that is text, or left out."""
        return None if self.body.get(name) is None else self.text(name)

    def whole(self, name: str, usual: int, most: int) -> int:
        """A field that is a whole number from 0 to `most`."""
        value = self._of(int, name, "a whole number") if self.body.get(name) is not None else usual
        if not 0 <= value <= most:
            raise QuestionError("bad-request", f"{name} must lie between 0 and {most}.")
        return value

    def number(self, name: str) -> float:
        """A field that is a number."""
        value = self.body.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise QuestionError("bad-request", f"{name} must be a number.")
        return float(value)

    def truth(self, name: str) -> bool:
        """A field that is true or false; false where it is left out."""
        return self.body.get(name) is not None and self._of(bool, name, "true or false")

    def names(self, name: str) -> list[str] | None:
        """A field that is a list of texts, or left out."""
        value = self.body.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise QuestionError("bad-request", f"{name} must be a list of names.")
        return cast("list[str] | None", value)

    def tree(self, name: str) -> dict[str, object]:
        """A field that is an object."""
        return cast("dict[str, object]", self._of(dict, name, "an object"))

    def question(self) -> Question:
        """The field `question`."""
        value = wire.from_json(self.body.get("question"))
        if not isinstance(value, QUESTIONS):
            raise QuestionError("wire-format", "The field question holds no question.")
        return value

    def spend(self) -> Loss | None:
        """The field `spend`; None where it is left out."""
        tree = self.body.get("spend")
        value = None if tree is None else wire.from_json(tree)
        if value is not None and not isinstance(value, LOSSES):
            raise QuestionError("wire-format", "The field spend holds no loss.")
        return cast("Loss | None", value)

    def _of(self, kind: type[T], name: str, what: str) -> T:
        value = self.body.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise QuestionError("bad-request", f"{name} must be {what}.")
        return value
