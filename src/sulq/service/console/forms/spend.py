"""What an ask pays, from the fields of its form."""

from __future__ import annotations

import math
from typing import Final

from sulq.language.facts import Facts
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.views.words import left, size

MIN_SLIDER_PRICE: Final = 0.001  # where the slider starts; a smaller price may be typed
CONFIDENCES: Final = {"0.1": "90%", "0.05": "95%", "0.01": "99%"}  # chances of being further off, and how one says it


def ways(budget: Budget) -> list[tuple[str, str]]:
    """How a budget can be paid from: the first is the usual one."""
    match budget:
        case Epsilon():
            return [("epsilon", "ε")]
        case Rho():
            return [("rho", "ρ"), ("epsilon", "ε")]
        case EpsilonDelta():
            return [("epsilon", "ε"), ("both", "ε and δ: groups that are not declared"), ("rho", "ρ")]
        case SubLinear():
            return []


def most(budget: Budget, remaining: object) -> float:
    """Where the slider ends: what is left, or a little more than nothing."""
    room = size(remaining) if isinstance(remaining, (Epsilon, EpsilonDelta, Rho)) else size(budget)
    return max(room, 10 * MIN_SLIDER_PRICE)


def usual(budget: Budget, remaining: object) -> float:
    """A price to begin with: a tenth of what is left, of one digit."""
    part = most(budget, remaining) / 10
    power = 10.0 ** math.floor(math.log10(part))
    return max(round(math.floor(part / power + 1e-9) * power, 12), MIN_SLIDER_PRICE)


def spend(fields: Fields, budget: Budget) -> dict[str, float] | None:
    """The spend a form names, in the API's short form; None where the budget sets the price itself."""
    if isinstance(budget, SubLinear):
        return None
    way = fields.text("way") or ways(budget)[0][0]
    amount = _number(fields.text("amount"), "The price")
    if way == "both":
        return {"epsilon": amount, "delta": _number(fields.text("delta"), "Delta")}
    return {"rho" if way == "rho" else "epsilon": amount}


def price_fields(known: Facts, sent: Fields) -> dict[str, object]:
    """What the part of a page shows that asks for a price."""
    delta = f"{float(known.budget.delta) / 100:g}" if isinstance(known.budget, EpsilonDelta) else ""
    return {
        "amount": sent.text("amount") or f"{usual(known.budget, known.remaining):g}",
        "ways": ways(known.budget),
        "way": sent.text("way"),
        "delta": sent.text("delta") or delta,
        "least": MIN_SLIDER_PRICE,
        "most": most(known.budget, known.remaining),
        "remaining": known.remaining,
        "budget": known.budget,
        "unit": known.unit,
        "left": left(known.remaining, known.budget),
    }


def terms(fields: Fields, budget: Budget) -> dict[str, object]:
    """How a form names its price, as the API takes it: a spend, or the accuracy wished for and the most it may cost."""
    paid = spend(fields, budget)
    if paid is None:
        return {}
    if fields.text("by") != "accuracy":
        return {"spend": paid}
    beta = fields.text("sure") or "0.05"
    if beta not in CONFIDENCES:
        raise Refusal(400, "bad-literal", "How sure is one of the list.", f"Choose {', '.join(CONFIDENCES.values())}.")
    return {"within": _number(fields.text("width"), "How far off"), "beta": float(beta), "at_most": paid}


def _number(text: str, what: str) -> float:
    try:
        found = float(text.replace("−", "-"))
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found <= 0:
        raise Refusal(400, "bad-loss", f"{what} is a number above zero.", "Write it with a point, such as 0.1.")
    return found
