"""Private selection: which of many public candidates is best, and nothing else (S3.9).

May be imported: the names below; SELECTIONS is the list that the command line, jobs and the console make forms from.
Never here: a score that is not of the closed list, or anything released beside the chosen candidate.

from sulq import select
select.choose(db, "city", spend=Epsilon(0.1)).candidate
select.price(db, "bid", [0.5, 1, 2], spend=Epsilon(0.5)).candidate
select.agnostic(db, {"old": col("age") > 60, "smoker": col("smoker")}, "ill", spend=Epsilon(1)).candidate
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sulq.select.selected import Selected, load
from sulq.select.selection import agnostic, agnostic_n, choose, price

__all__ = ["SELECTIONS", "Selected", "agnostic", "agnostic_n", "choose", "load", "price"]

# Every selection, by name; its command, its job and its page come from its signature.
SELECTIONS: Final[tuple[Callable[..., Selected], ...]] = (choose, price, agnostic)
