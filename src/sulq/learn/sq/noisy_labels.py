"""Clean statistics from labels that were flipped at random [S2.13, S2.14].

Each label was turned round, independently, with a known probability eta below 1/2. A query
about the true labels is answered from the flipped ones, so every statistical-query learner
learns the truth, more closely than the labels it sees tell it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number
from sulq.language.kinds import Floats
from sulq.language.rowfn import Arith, Col, Not, RowFn, lit
from sulq.learn.sq.oracle import Partitions, PricedOracle, StatOracle, checked_tolerance


class NoisyLabels(PricedOracle):
    """An oracle on flipped labels made into one on the true ones.

    Accuracy: with psi(x, y) = (1 - eta) phi(x, y) + eta (1 - phi(x, not y)), which lies in [0, 1],
    E[phi(x, truth)] = (E[psi(x, seen)] - eta)/(1 - 2 eta), so psi asked to within tau (1 - 2 eta)
    gives phi to within tau. With `paper` the two parts of phi, the one that no label enters and the one
    that flips with it, are two queries to within tau/2 and tau (1 - 2 eta)/2, as the notes have it.
    Source: SQNotes, Theorem 8 (docs/theory/statistical-queries.md).

    oracle: Any oracle over rows with the flipped labels.
    label: The name of the label's column, a truth value.
    eta: How likely a label was flipped, from 0 up to 1/2; an eta that is wrong by a factor in 1/(1 - 2 eta)
        makes answers wrong by it.
    """

    def __init__(self, oracle: StatOracle, label: str, eta: float, *, paper: bool = False) -> None:
        checked(0 <= number(eta) < 0.5, "eta lies from 0 up to, not including, 1/2.")
        self._oracle, self.label, self.eta, self.paper = oracle, label, float(eta), paper

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """The means of phis over the true labels."""
        checked_tolerance(tau)
        free = [i for i, phi in enumerate(phis) if not mentions(phi, self.label)]
        bound = [i for i in range(len(phis)) if i not in set(free)]
        found = np.zeros(len(phis))
        if free:
            found[free] = self._oracle.stats([phis[i] for i in free], tau)
        if bound:
            ask = self._two if self.paper else self._one
            found[bound] = ask([phis[i] for i in bound], tau)
        return found

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means over the true labels for a part of the spend, and the tolerance they have."""
        answers, tau = self._priced().best([self._corrected(phi) for phi in phis], part)
        return (answers - self.eta) / (1 - 2 * self.eta), min(tau / (1 - 2 * self.eta), 1.0)

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """Tables of conditions over the true labels."""
        if not self._tabled:
            return super().cells(partitions, tau)
        return self._unmixed(self._oracle.cells(self._both(partitions), tau * (1 - 2 * self.eta)))

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables of conditions over the true labels for a part of the spend, and the tolerance they have."""
        if not self._tabled:
            return super().best_cells(partitions, part)
        tables, tau = self._priced().best_cells(self._both(partitions), part)
        return self._unmixed(tables), min(tau / (1 - 2 * self.eta), 1.0)

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        self._priced().afford([self._corrected(phi) for phi in phis], times, tau * (1 - 2 * self.eta))

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        if self._tabled:
            self._priced().afford_cells(conditions, 2 * times, tau * (1 - 2 * self.eta))
        else:
            super().afford_cells(conditions, times, tau)

    @property
    def _tabled(self) -> bool:
        """Whether a table costs the oracle behind as one query: then two tables, seen and turned, are cheapest."""
        return bool(getattr(self._oracle, "tabled", False))

    def _both(self, partitions: Partitions) -> list[list[RowFn]]:
        turned = [[flipped(one, self.label) for one in conditions] for conditions in partitions]
        return [*map(list, partitions), *turned]

    def _unmixed(self, tables: list[Floats]) -> list[Floats]:
        """E[phi(x, truth)] = ((1 - eta) E[phi(x, seen)] - eta E[phi(x, not seen)])/(1 - 2 eta): off by tau at most."""
        half = len(tables) // 2
        pairs = zip(tables[:half], tables[half:], strict=True)
        return [((1 - self.eta) * seen - self.eta * turned) / (1 - 2 * self.eta) for seen, turned in pairs]

    def _priced(self) -> PricedOracle:
        checked(hasattr(self._oracle, "best"), "The oracle behind has no spend: name a tolerance.")
        return cast("PricedOracle", self._oracle)

    def _one(self, phis: Sequence[RowFn], tau: float) -> Floats:
        answers = self._oracle.stats([self._corrected(phi) for phi in phis], tau * (1 - 2 * self.eta))
        return (answers - self.eta) / (1 - 2 * self.eta)

    def _corrected(self, phi: RowFn) -> RowFn:
        seen, turned = _zero(phi), _zero(flipped(phi, self.label))
        return seen * (1 - self.eta) + (1 - turned) * self.eta

    def _two(self, phis: Sequence[RowFn], tau: float) -> Floats:
        pairs = [(_zero(phi), _zero(flipped(phi, self.label))) for phi in phis]
        same = self._oracle.stats([(seen + turned) * 0.5 for seen, turned in pairs], tau / 2)
        turns = [(seen - turned) * 0.5 + 0.5 for seen, turned in pairs]
        other = self._oracle.stats(turns, tau * (1 - 2 * self.eta) / 2)
        return same + (other - 0.5) / (1 - 2 * self.eta)


def mentions(phi: RowFn, label: str) -> bool:
    """Whether a row function looks at a column."""
    if not isinstance(phi, RowFn):
        raise QuestionError("bad-question", "A query is built from columns: sulq.col(...).")
    front: list[RowFn] = [phi]
    while front:
        if any(isinstance(fn, Col) and fn.name == label for fn in front):
            return True
        front = [part for fn in front for part in fn.parts()]
    return False


def flipped(phi: RowFn, label: str) -> RowFn:
    """The same row function of the opposite label: phi(x, not y)."""
    if isinstance(phi, Col):
        return Not(phi) if phi.name == label else phi
    changed = {
        field.name: _flipped_part(getattr(phi, field.name), label)
        for field in dataclasses.fields(phi)  # type: ignore[arg-type]  # every row function is a dataclass
        if field.init
    }
    return dataclasses.replace(phi, **changed)  # type: ignore[type-var]


def _flipped_part(value: object, label: str) -> object:
    if isinstance(value, RowFn):
        return flipped(value, label)
    return tuple(_flipped_part(item, label) for item in value) if isinstance(value, tuple) else value


def _zero(phi: RowFn) -> RowFn:
    """A condition or a number as a number, zero where it is missing."""
    return Arith("*", phi, lit(1)).fill(0)
