"""The worst oracle there may be: every answer is pushed as far as its tolerance allows [S2.8].

A learner's theorem must hold whatever the answers are within tau, so its test is this oracle:
one that fails only where noise happens to be unkind would pass a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sulq.errors import QuestionError
from sulq.language.rowfn import RowFn
from sulq.learn.sq.oracle import Backend, StatOracle

Push = Callable[[int, float, float], float]
PUSHES: Final[dict[str, Push]] = {
    "up": lambda _, __, ___: 1.0,
    "down": lambda _, __, ___: -1.0,
    "turns": lambda number, __, ___: 1.0 if number % 2 else -1.0,
    # Small means are told too large and others too small: what a threshold at tau likes least.
    "against": lambda _, truth, tau: 1.0 if truth <= tau else -1.0,
}


class Adversarial(Backend):
    """An oracle's answers, moved by a whole tau up or down.

    oracle: Whose answers are pushed; a query to it is taken as exact.
    push: One of "up", "down", "turns" and "against", or a function of the query's number,
        the truth and tau that gives how many taus to move by, from -1 to 1.
    """

    def __init__(self, oracle: StatOracle, push: str | Push = "against") -> None:
        if isinstance(push, str) and push not in PUSHES:
            raise QuestionError("bad-parameter", f"push is one of {', '.join(PUSHES)}, or a function.")
        self._oracle = oracle
        self._push = PUSHES[push] if isinstance(push, str) else push
        self.asked = 0

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, pushed."""
        truth = self._oracle.stat(phi, tau)
        move = self._push(self.asked, truth, tau)
        self.asked += 1
        return truth + tau * min(max(move, -1.0), 1.0)
