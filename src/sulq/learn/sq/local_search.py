"""Hill climbing on the error rate: from a simple rule to its best neighbour, as long as one is better [S2.16].

The error rate of a rule is a statistical query, so local search over any space of rules is an algorithm of that
model [SQNotes, section 1.2.1]. A space gives its first rule, a rule's neighbours, and the condition a rule is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats, Truths
from sulq.language.rowfn import Arith, Col, Compare, Logic, Not, RowFn, lit
from sulq.learn.sq.boolean import NEARLY, BooleanClassifier
from sulq.learn.sq.oracles import PricedOracle, StatOracle, known

Hypothesis = tuple[int, ...]
CONCEPTS: Final = ("monotone", "conjunctions", "halfspaces")
MAX_WEIGHT: Final = 100
MAX_ROUNDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Conjunctions:
    """Conjunctions of literals: for each column 0 (left out), 1 (must be true) or, unless monotone, -1 (must be false).

    A neighbour differs in one column, so there are d or 2d of them. The first is the empty one, which always holds.
    """

    names: tuple[str, ...]
    monotone: bool

    @property
    def states(self) -> tuple[int, ...]:
        """What a column may be in a rule."""
        return (0, 1) if self.monotone else (0, 1, -1)

    @property
    def first(self) -> Hypothesis:
        return (0,) * len(self.names)

    @property
    def most(self) -> int:
        return (len(self.states) - 1) * len(self.names)

    @property
    def size(self) -> int:
        return int(len(self.states) ** len(self.names))

    def neighbours(self, rule: Hypothesis) -> list[Hypothesis]:
        states = ((i, state) for i in range(len(rule)) for state in self.states if state != rule[i])
        return [(*rule[:i], state, *rule[i + 1 :]) for i, state in states]

    def condition(self, rule: Hypothesis) -> RowFn | None:
        asked = [(known(Col(name)), sign) for name, sign in zip(self.names, rule, strict=True) if sign]
        literals: tuple[RowFn, ...] = tuple(column if sign > 0 else Not(column) for column, sign in asked)
        return Logic("and", literals) if literals else None

    def holds(self, rule: Hypothesis, X: Truths) -> Truths:
        signs = np.array(rule)
        return np.asarray(X[:, signs > 0].all(axis=1) & ~X[:, signs < 0].any(axis=1))

    def text(self, rule: Hypothesis) -> str:
        named = zip(self.names, rule, strict=True)
        return " and ".join(f"{'' if sign > 0 else 'not '}{name}" for name, sign in named if sign) or "always true"


@dataclass(frozen=True, slots=True)
class WeightedVotes:
    """Halfspaces of small whole weights: whether the weights of the true columns reach the threshold, the last number.

    A neighbour differs by one in at most one weight and by at most one in the threshold, so there are 6d + 2 of them:
    a conjunction of two columns is one step from that of one. The first, without weights, always holds.
    """

    names: tuple[str, ...]
    most_weight: int

    @property
    def first(self) -> Hypothesis:
        return (0,) * (len(self.names) + 1)

    @property
    def most(self) -> int:
        return 6 * len(self.names) + 2

    @property
    def reach(self) -> int:
        """The largest threshold that differs from all others."""
        return self.most_weight * len(self.names)

    @property
    def size(self) -> int:
        return int((2 * self.most_weight + 1) ** len(self.names)) * (2 * self.reach + 1)

    def neighbours(self, rule: Hypothesis) -> list[Hypothesis]:
        weights, threshold = rule[:-1], rule[-1]
        turned = [weights]
        for i, value in enumerate(weights):
            near = [each for each in (value - 1, value + 1) if abs(each) <= self.most_weight]
            turned += [(*weights[:i], each, *weights[i + 1 :]) for each in near]
        moved = [each for each in (threshold - 1, threshold, threshold + 1) if abs(each) <= self.reach]
        return [(*one, each) for one in turned for each in moved if (*one, each) != rule]

    def condition(self, rule: Hypothesis) -> RowFn | None:
        total: RowFn = lit(0)
        for name, weight in zip(self.names, rule, strict=False):
            total = Arith("+", total, Arith("*", known(Col(name)), lit(weight))) if weight else total
        if any(rule[:-1]):
            return Compare(">=", total, lit(rule[-1]))
        return None if rule[-1] <= 0 else Logic("and", (known(Col(self.names[0])), Not(known(Col(self.names[0])))))

    def holds(self, rule: Hypothesis, X: Truths) -> Truths:
        return np.asarray(X.astype(np.int64) @ np.array(rule[:-1], dtype=np.int64) >= rule[-1])

    def text(self, rule: Hypothesis) -> str:
        named = [(weight, name) for name, weight in zip(self.names, rule, strict=False) if weight]
        terms = " ".join(f"{'+' if weight > 0 else '-'} {abs(weight)} {name}" for weight, name in named)
        return f"{terms.removeprefix('+ ') or '0'} >= {rule[-1]}"


# A space of rules over named truth values; a rule is a tuple of whole numbers. `first` is where the climb starts,
# `most` how many neighbours a rule has at most, `size` how many rules there are. `neighbours` are the rules one step
# away, `condition` is a rule on a row (None where it always holds), `holds` on rows of truth values, `text` for people.
# A missing cell is false, as `predict` has it.
Hypotheses = Conjunctions | WeightedVotes


@dataclass(eq=False, repr=False, kw_only=True)
class HillClimbing(BooleanClassifier):
    """The rule that no neighbour beats: local search over simple rules by their noisy error rates.

    A round asks the error rates of all neighbours of the rule at hand, in one question, and goes to the best of them
    if it is better by more than the answers may be off; else the climb ends. How many queries there may be, and their
    tolerance, are fixed before the first.

    Privacy: the spend's; rules are chosen by noisy means alone.
    Accuracy: with answers within tau = accuracy/4 every step lowers the true error rate, and where the climb
    ends no neighbour is better by more than `accuracy`; so with probability 1 - beta. `accuracy_` bounds the error
    rate of the rule found whatever the rows. Of monotone conjunctions, on independent columns and such a conjunction as
    the label, only the target is a top (docs/theory/statistical-queries.md); in general there are others.
    Source: SQNotes, section 1.2.1.

    concepts: "monotone" conjunctions, of columns that must be true; "conjunctions" of columns that must be true or
        false; "halfspaces" of whole weights, the columns with a positive weight speaking for the label.
    max_iter: How many rounds at most.
    max_weight: Of halfspaces, the largest weight.
    accuracy: By how much a neighbour may still be better: a fit whose spend does not buy that for all rounds is
        refused with the number of rows it would need. Left out, the fit makes the best of its spend.
    beta: The probability with which what is said may fail.
    eta: How likely each label was flipped, where the labels are known to be noisy; error rates are then those by the
        true ones.

    Learned: `rule_`, a number for each column and, of halfspaces, the threshold; `error_`, its error rate, and
    `tolerance_`, how far that may be off; `accuracy_`, an error rate that is not passed; `errors_`, the error rates of
    the rules on the way; `converged_`, whether no neighbour was better; `queries_`, how many queries were asked.
    """

    concepts: Literal["monotone", "conjunctions", "halfspaces"] = "conjunctions"
    max_iter: int = 6
    max_weight: int = 1

    def _check(self) -> None:
        super()._check()
        checked(self.concepts in CONCEPTS, f"concepts is one of {', '.join(CONCEPTS)}.")
        whole(self.max_iter, "max_iter", 1, MAX_ROUNDS)
        whole(self.max_weight, "max_weight", 1, MAX_WEIGHT)

    def _space(self, names: tuple[str, ...]) -> Hypotheses:
        if self.concepts == "halfspaces":
            return WeightedVotes(names, self.max_weight)
        return Conjunctions(names, self.concepts == "monotone")

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        space = self._space(tuple(map(str, range(columns))))
        return self.max_iter, 1 + self.max_iter * space.most, max(space.size, 1 + self.max_iter * space.most)

    def _afford(self, oracle: PricedOracle, names: tuple[str, ...], label: str) -> None:
        space = self._space(names)
        one = error_of(space, space.first, label)
        near = [error_of(space, rule, label) for rule in space.neighbours(space.first)]
        near += [one] * (space.most - len(near))
        oracle.afford([one, *near * self.max_iter], 1, self._tau())

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        tau = self._tau()
        self._climb(lambda asked: (oracle.stats(asked, tau), tau), names, label, 1.0)

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        each = part / self._asks(len(names))[1]
        self._climb(lambda asked: oracle.best(asked, each * len(asked)), names, label, NEARLY)

    def _tau(self) -> float:
        return float(self.accuracy or 0) / 4

    def _climb(
        self, ask: Callable[[list[RowFn]], tuple[Floats, float]], names: tuple[str, ...], label: str, sure: float
    ) -> None:
        """Go to the best neighbour while it is better by more than `sure` times what both answers may be off."""
        space = self._space(names)
        rule, errors, loosest = space.first, list[float](), 0.0
        self.converged_, self.queries_, tau_here = False, 0, 0.0
        for number in range(self.max_iter):
            near = space.neighbours(rule)
            asked = near if number else [rule, *near]
            answers, tau = ask([error_of(space, one, label) for one in asked])
            self.queries_ += len(asked)
            loosest = max(loosest, tau)
            if not number:
                errors, tau_here, answers = [float(answers[0])], tau, answers[1:]
            place = int(np.argmin(answers))
            if answers[place] >= errors[-1] - sure * (tau_here + tau):
                self.converged_ = True
                break
            rule, tau_here = near[place], tau
            errors.append(float(answers[place]))
        self.classes_ = np.array([False, True])
        self.rule_, self.errors_ = rule, np.array(errors)
        self.error_, self.tolerance_ = min(max(errors[-1], 0.0), 1.0), loosest
        self.accuracy_ = min(1.0, self.error_ + tau_here)

    def _rule(self, X: Truths) -> Truths:
        return self._space(self.feature_names_in_).holds(self.rule_, X)

    def _condition(self) -> RowFn:
        said = self._space(self.feature_names_in_).condition(self.rule_)
        return lit(True) if said is None else said

    def export_text(self) -> str:
        """The rule as a line of text."""
        self._ready()
        return self._space(self.feature_names_in_).text(self.rule_)


def error_of(space: Hypotheses, rule: Hypothesis, label: str) -> RowFn:
    """Whether a rule is wrong about a row: the query whose mean is its error rate [S2.8]."""
    said = space.condition(rule)
    return Not(Col(label)) if said is None else Compare("!=", said, Col(label))
