"""The randomisers by name: named, never discovered; and which of them a domain is best served by."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.language.kinds import Integers, Truths
from sulq.language.privacy import Epsilon, exactly
from sulq.local.bitwise import BitwiseResponse
from sulq.local.hadamard import HadamardResponse
from sulq.local.krr import KaryResponse
from sulq.local.oue import UnaryResponse
from sulq.local.record import Record

Reports = Integers | Truths  # whole numbers, or rows of truth values
Response = KaryResponse | BitwiseResponse | UnaryResponse | HadamardResponse
METHODS: Final[dict[str, type[Response]]] = {
    "krr": KaryResponse,
    "bitwise": BitwiseResponse,
    "oue": UnaryResponse,
    "hadamard": HadamardResponse,
}
AUTO: Final = "auto"
LONGEST: Final = 1_024  # bits of a report that nobody asked to be as long
LEAST: Final = Fraction(1, 10**6)  # below, a report tells nothing that any number of people would bring out


def price(epsilon: object) -> Fraction:
    """What one report costs its respondent: a number, or a loss of pure epsilon."""
    exact = epsilon.exact if isinstance(epsilon, Epsilon) else exactly(epsilon, "epsilon")
    if exact < LEAST:
        raise QuestionError("bad-loss", f"Nothing is learned from reports of epsilon below {float(LEAST):g}.")
    return exact


def response(record: Record, epsilon: Fraction, method: str) -> tuple[str, Response]:
    """The randomiser of a method for a record, and the method's name: `auto` takes the one of least variance."""
    name = best(record.cells, epsilon) if method == AUTO else method
    if not isinstance(name, str) or name not in METHODS:
        raise QuestionError("bad-parameter", f"method is one of {', '.join((*METHODS, AUTO))}.")
    found = METHODS[name].of(record.sizes, epsilon)
    if isinstance(found, BitwiseResponse) and found.outcomes > 2**20:
        raise QuestionError("too-large", f"A record of {found.bits} bits is too long; 20 are the most.")
    return name, found


def best(cells: int, epsilon: Fraction) -> str:
    """The method whose rare values are estimated with the least variance; of nearly equals the shorter report.

    A report of oue has a bit for each value, so beyond a thousand values it is not taken, whatever it would gain.

    Accuracy: by the variances that `Collector.frequencies` tells: krr where K < 3e + 2, e = exp(epsilon) [WBLJ17].
    """
    e = math.exp(min(float(epsilon), 600.0))
    if cells < 3 * e + 2:
        return "krr"
    return "hadamard" if cells > LONGEST or (e + 1) ** 2 <= 1.5 * 4 * e else "oue"
