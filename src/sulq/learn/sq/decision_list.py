"""Decision lists by statistical queries: if this column is so, the answer is that; else look at the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats, Truths
from sulq.language.rowfn import Col, Logic, Not, RowFn
from sulq.learn.sq.boolean import BooleanClassifier
from sulq.learn.sq.oracle import PricedOracle, StatOracle

Rule = tuple[str, bool, bool]  # a column, the value it is asked for, the answer where it has it
Ask = Callable[[list[list[RowFn]], int], tuple[list[Floats], float]]
USUAL: Final = 6  # rules of a list that promises nothing beforehand
# Tolerances hold for all answers at once; a single one is nearly always within this part of it. Measured on lists of
# 5 rules over 10 columns, epsilon .3 to 3, 2,000 and 20,000 rows: mean error .038, and .079 with the whole.
NEARLY: Final = 0.2


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionList(BooleanClassifier):
    """Rules tried one after another: the first whose column has its value says the answer.

    A round asks, of the rows that no rule holds for yet and for every column not used yet, how often it is true or
    false with either label: one table a column, at the price of one count. The rule whose rows are the purest becomes
    the next one; if nearly all rows left have one label, that is the end. Spends are
    divided over rounds as their numbers of tables are, so that all have the same tolerance.

    Privacy: the spend's; the rules are computed from noisy tables alone.
    Accuracy: if some decision list is right on every row and answers are within tau = accuracy/(2d + 2), the list
    found is wrong on at most the part `accuracy` of the rows; so with probability 1 - beta
    (docs/theory/statistical-queries.md). Whatever the rows, `accuracy_` bounds the error with that probability.

    max_length: How many rules at most, the last answer among them; left out, 6, or as many as there are columns and
        one more where an accuracy is promised.
    accuracy: The error rate that is good enough, such as 0.1: a fit that cannot promise it is refused with the
        number of rows it would need. Left out, the fit makes the best of its spend.
    beta: The probability with which `accuracy_` may fail.
    eta: How likely each label was flipped, where the labels are known to be noisy; what is said is then about the
        true ones.

    Learned: `rules_`, each (column, value, answer); `default_`, the answer where no rule holds; `accuracy_`, an error
    rate that is not passed; `tolerance_`, how far the means behind the rules may be off.
    """

    max_length: int | None = None

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        # The rows left are those without the values of some columns: three choices a column; labels both ways round.
        tables, asks = self._tables(columns), 8 if self.eta else 4
        return len(tables), asks * sum(tables), 3**columns * asks * (columns + 1)

    def _afford(self, oracle: PricedOracle, names: tuple[str, ...], label: str) -> None:
        oracle.afford_cells(_four([], names[0], label), sum(self._tables(len(names))), self._tau(len(names)))

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        tau, length = self._tau(len(names)), len(self._tables(len(names)))
        self._grow(lambda asked, _: (oracle.cells(asked, tau), tau), names, label, length, sure=True)

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        tables = self._tables(len(names))
        parts = [part * Fraction(count, sum(tables)) for count in tables]
        self._grow(lambda asked, number: oracle.best_cells(asked, parts[number]), names, label, len(tables), sure=False)

    def _check(self) -> None:
        super()._check()
        if self.max_length is not None:
            whole(self.max_length, "max_length", 1, 10**6)
            checked(self.accuracy is None, "A promised accuracy may need every column: leave max_length out.")

    def _tau(self, columns: int) -> float:
        return float(self.accuracy or 0) / (2 * columns + 2)

    def _tables(self, columns: int) -> list[int]:
        """How many tables each round asks; the last one is for the last answer."""
        usual = columns + 1 if self.accuracy is not None else USUAL
        length = min(columns + 1, self.max_length or usual)
        return [columns - i for i in range(length - 1)] + [1]

    def _grow(self, ask: Ask, names: tuple[str, ...], label: str, length: int, *, sure: bool) -> None:
        rules: list[Rule] = []
        free, wrong, loosest = list(names), 0.0, 0.0
        while len(rules) < length - 1:
            answers, tau = ask([_four(rules, name, label) for name in free], len(rules))
            loosest = max(loosest, tau)
            # By column, its value and the label, true before false; no true mean is below zero.
            counts = np.clip(answers, 0.0, 1.0).reshape(len(free), 2, 2)
            left = counts.sum(axis=1).mean(axis=0)
            small = tau if sure else NEARLY * tau
            if left.min() <= small:
                break
            place, error = _purest(counts, small, sure=sure)
            rules.append((free.pop(place[0]), place[1] == 0, place[2] == 0))
            wrong += error + tau
        else:
            answers, tau = ask([_two(rules, label)], length - 1)
            loosest, left = max(loosest, tau), answers[0]
            tau /= 2  # a table of its own; the mean of others' may be off by twice as much
        self.classes_ = np.array([False, True])
        self.rules_, self.default_ = tuple(rules), bool(left[0] >= left[1])
        self.tolerance_ = loosest
        self.accuracy_ = float(min(1.0, max(0.0, wrong + left.min() + 2 * tau)))

    def _rule(self, X: Truths) -> Truths:
        found = np.full(len(X), self.default_)
        for name, value, answer in reversed(self.rules_):
            found[X[:, self.feature_names_in_.index(name)] == value] = answer
        return found

    def export_text(self) -> str:
        """The rules, one a line."""
        self._ready()
        words = {True: "true", False: "false"}
        lines = [f"if {'' if value else 'not '}{name}: {words[answer]}" for name, value, answer in self.rules_]
        return "\nelse ".join(lines) + f"\nelse: {words[self.default_]}" if lines else f"always {words[self.default_]}"


def _purest(counts: Floats, small: float, *, sure: bool) -> tuple[tuple[int, int, int], float]:
    """The rule (column, place of its value, place of its answer) whose rows are the purest, and how often it errs.

    Where a promise is to be kept only rules whose errors are small are looked at, if there are any. What is
    small is added before rules are compared, so that an empty one is not a pure one.
    """
    errors, mass = counts[:, :, ::-1], counts.sum(axis=2, keepdims=True)
    impurity = (errors + small) / (mass + 2 * small)
    fine = errors <= small
    if sure and fine.any():
        impurity = np.where(fine, impurity, np.inf)
    place = np.unravel_index(int(np.argmin(impurity)), impurity.shape)
    column, value, answer = (int(i) for i in place)
    return (column, value, answer), float(errors[column, value, answer])


def _rest(rules: Sequence[Rule]) -> list[RowFn]:
    """The rows that no rule holds for."""
    return [Not(Col(name)) if value else Col(name) for name, value, _ in rules]


def _four(rules: Sequence[Rule], name: str, label: str) -> list[RowFn]:
    """A column's value and the label, over the rows that are left."""
    found, answer, rest = Col(name), Col(label), _rest(rules)
    return [Logic("and", (*rest, value, said)) for value in (found, Not(found)) for said in (answer, Not(answer))]


def _two(rules: Sequence[Rule], label: str) -> list[RowFn]:
    """The label, over the rows that are left."""
    return [Logic("and", (*_rest(rules), said)) for said in (Col(label), Not(Col(label)))]
