"""How a named ask is paid."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.errors import QuestionError
from sulq.language.privacy import Loss


@dataclass(frozen=True, slots=True)
class Pay:
    """A spend, or the accuracy that sets its price.

    `within`: the width that an answer may be off by, except with probability `beta`, at a price of `at_most`.
    `fresh`: new noise at full price, although a stored answer would do (SR12).
    """

    spend: Loss | None = None
    within: float | None = None
    beta: float = 0.05
    at_most: Loss | None = None
    fresh: bool = False

    def price_once(self) -> None:
        """Refuse a spend beside an accuracy."""
        if self.spend is not None:
            raise QuestionError("bad-question", "Name spend or within, not both.")

    @property
    def reuse(self) -> bool:
        """Whether a stored answer may be given instead."""
        if not isinstance(self.fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        return not self.fresh
