"""Learners of Boolean concepts by statistical queries: monotone conjunctions [S2.10] and decision lists.

They take rows of truth values with a truth value to predict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Bool, Column
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Loss, Queries
from sulq.language.rowfn import Col, Lit, Logic, Not, RowFn
from sulq.learn.base import Learner
from sulq.learn.evaluation.judged import JudgedClassifier
from sulq.learn.evaluation.prediction import ClassPrediction
from sulq.learn.features import cells, numbers_of
from sulq.learn.sq.account import COUNT_FIRST
from sulq.learn.sq.backends import of_all_rows
from sulq.learn.sq.oracles import NoisyLabels, PricedOracle, StatOracle, known

Rule = tuple[str, bool, bool]  # a column, the value it is asked for, the answer where it has it
Ask = Callable[[list[list[RowFn]], int], tuple[list[Floats], float]]
USUAL: Final = 6  # rules of a list that promises nothing beforehand
# Tolerances hold for all answers at once; a single one is nearly always within this part of it. Measured on lists of
# 5 rules over 10 columns, epsilon .3 to 3, 2,000 and 20,000 rows: mean error .038, and .079 with the whole.
NEARLY: Final = 0.2


@dataclass(eq=False, repr=False, kw_only=True)
class BooleanClassifier(JudgedClassifier, Learner):
    """A learner of a truth value from truth values, by statistical queries; its rule is read by `export_text`."""

    kind = "classifier"
    binary = True

    accuracy: float | None = None
    beta: float = 0.05
    eta: float = 0.0

    def learn(self, oracle: StatOracle, names: Sequence[str], label: str) -> Self:
        """Learn from any oracle of statistical queries instead of a database; needs `accuracy`."""
        self._check()
        checked(self.accuracy is not None, "Name the accuracy: this oracle has no spend to make the best of.")
        self._promised(NoisyLabels(oracle, label, self.eta) if self.eta else oracle, tuple(names), label)
        self.feature_names_in_, self.n_features_in_ = tuple(names), len(names)
        self.spent_ = getattr(oracle, "spent", Queries(0))
        return self

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        self._check()
        names, label = truth_columns(X, y)
        steps, queries, family = self._asks(len(names))
        backend = of_all_rows(spending, queries=queries, beta=self.beta, population=self.eta > 0, family=family)
        counted = not backend.account.known
        spending.plan(steps + counted)
        oracle: PricedOracle = NoisyLabels(backend, label, self.eta) if self.eta else backend
        if self.accuracy is not None:
            self._afford(oracle, names, label)
            self._promised(oracle, names, label)
        else:
            self._best(oracle, names, label, 1 - COUNT_FIRST if counted else Fraction(1))

    def _check(self) -> None:
        """Refuse parameters that are no probabilities, before anything is asked."""
        good = self.accuracy is None or 0 < number(self.accuracy) < 1
        checked(good, "accuracy is an error rate between 0 and 1, or None.")
        checked(0 < number(self.beta) < 1, "beta lies between 0 and 1.")
        checked(self.eta == 0 or 0 < number(self.eta) < 0.5, "eta lies from 0 up to, not including, 1/2.")

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        """The asks and the queries of a fit at most, and how many queries there might be."""
        raise NotImplementedError

    def _afford(self, oracle: PricedOracle, names: tuple[str, ...], label: str) -> None:
        """Refuse, before the first of several asks, a promise that the spend does not buy."""

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        """Learn what keeps the promised accuracy."""
        raise NotImplementedError

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        """Learn the best that a part of the spend buys."""
        raise NotImplementedError

    def predict(self, X: object) -> Truths:
        """What the rule says of each row of an ordinary array or frame; a missing cell is false."""
        self._ready()
        return self._rule(truths_of(X, self.feature_names_in_))

    def score(self, X: object, y: object, *, spend: Loss | None = None) -> float | Answer:
        """The part of the rows on which the rule is right; of private columns a noisy answer, for a spend."""
        found = self._private_score(X, y, spend)
        if found is not None:
            return found
        given = numbers_of(np.asarray(y).ravel(), Bool(), "y")
        return float(np.mean(self.predict(X) == (given > 0.5)))

    def _rule(self, X: Truths) -> Truths:
        raise NotImplementedError

    def _condition(self) -> RowFn:
        """The rule as a condition; a missing cell is false."""
        raise NotImplementedError

    def _prediction(self) -> ClassPrediction:
        return ClassPrediction.of_rule(self._condition())

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return tuple((name, Bool()) for name in self.feature_names_in_)


def truths_of(X: object, names: tuple[str, ...]) -> Truths:
    """An ordinary table of truth values, or of zeros and ones; what is missing is false."""
    found = cells(X, names)
    columns = [np.nan_to_num(numbers_of(found[name], Bool(), name)) > 0.5 for name in names]
    return np.stack(columns, axis=1)


def truth_columns(X: ColumnChoice, y: ColumnChoice) -> tuple[tuple[str, ...], str]:
    """The names of the columns and of the label, if they are all truth values."""
    for columns in (X, y):
        for name, domain in zip(columns.names, columns.domain, strict=True):
            if not isinstance(domain, Bool):
                raise QuestionError("wrong-kind", f"{name} is not a truth value.", "Declare it as Bool, or compare it.")
    return X.names, y.names[0]


class MonotoneConjunction(BooleanClassifier):
    """The conjunction of all columns that are hardly ever false where the label is true.

    One query a column: how often is it false while the label is true? A column of the target never is. All d
    queries are one vector question; where no size is declared a tenth of the spend is a noisy count.

    Privacy: the spend's; the rule is computed from noisy means alone.
    Accuracy: with answers within tau = accuracy/(2d) the rule holds every column of the target conjunction, is
    wrong only where it says false, and on at most the part `accuracy` of the rows; so with probability 1 - beta.
    Source: SQNotes, Theorem 5 (d = 12, accuracy .1: tau = .00417) [S2.7, S2.9, S2.10]; to learn is to be wrong on
    at most that part of the rows, not on all but it (E04).

    accuracy: The error rate that is good enough, such as 0.1: a fit that cannot promise it is refused with the
        number of rows it would need. Left out, the fit makes the best of its spend and says in `accuracy_`
        what it can promise.
    beta: The probability with which the promise may fail.
    eta: How likely each label was flipped, where the labels are known to be noisy; the promise is then about the
        true ones.

    Learned: `variables_`, the columns of the conjunction; `estimates_`, the noisy means; `tolerance_`, how far they
    may be off; `accuracy_`, the error rate that is promised.
    """

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        return 1, columns, None

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        tau = float(self.accuracy or 0) / (2 * len(names))
        self._conclude(names, oracle.stats(queries(names, label), tau), tau)

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        self._conclude(names, *oracle.best(queries(names, label), part))

    def _conclude(self, names: tuple[str, ...], answers: Floats, tau: float) -> None:
        self.classes_ = np.array([False, True])
        self.estimates_ = answers
        self.tolerance_ = tau
        self.accuracy_ = min(1.0, 2 * len(names) * tau)
        self.variables_ = tuple(name for name, answer in zip(names, answers, strict=True) if answer <= tau)

    def _rule(self, X: Truths) -> Truths:
        kept = [name in self.variables_ for name in self.feature_names_in_]
        return np.asarray(X[:, kept].all(axis=1))

    def _condition(self) -> RowFn:
        return Logic("and", tuple(known(Col(name)) for name in self.variables_)) if self.variables_ else Lit(True)

    def export_text(self) -> str:
        """The rule as a line of text."""
        self._ready()
        return " and ".join(self.variables_) or "always true"


def queries(names: Sequence[str], label: str) -> list[RowFn]:
    """For each column, whether it is false although the label is true [S2.10]."""
    return [Not(Col(name)) & Col(label) for name in names]


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
            rest = _rest(rules)
            both: list[RowFn] = [Logic("and", (*rest, said)) for said in (Col(label), Not(Col(label)))]
            answers, tau = ask([both], length - 1)
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

    def _condition(self) -> RowFn:
        found: RowFn = Lit(self.default_)
        for name, value, answer in reversed(self.rules_):
            here = known(Col(name)) if value else Not(known(Col(name)))
            found = Logic("or", (here, found)) if answer else Logic("and", (Not(here), found))
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
