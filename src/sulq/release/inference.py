"""Statistics of 2l attributes inferred from published statistics of l attributes on random subsets of the people."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import pyarrow as pa

from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError, SulqError
from sulq.forms.parameters import checked, whole
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.language.question import MAX_VALUES
from sulq.release.base import Chart, Paid, Release, labels_from_json, labels_to_json, unreadable
from sulq.release.space import ATTRIBUTES, below, domain_of, listed
from sulq.release.subsets import (
    MAX_SUBSETS,
    Design,
    Direct,
    Estimate,
    Implication,
    Probabilities,
    SubsetHistograms,
    SubsetQuestion,
    best_groups,
    by_heavy,
    by_regression,
    code_of,
    divided,
    from_groups,
    from_halves,
    merged,
    single,
)
from sulq.release.tables.interactions import Places

USUAL_GROUPS: Final = 256  # where no size is declared by which to choose their number
USUAL_HALVES: Final = 64
MAX_ATTRIBUTES: Final = 64
MAX_COMPARED_TABLES: Final = 64  # tables that the comparison with direct measurement is made on
MAX_CHARTS: Final = 12  # tables on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference(Release):
    """Published statistics of l attributes on random subsets, and what they tell of 2l attributes.

    `direct`: what direct measurement would have given at the same spend; None where it would not fit a question.
    """

    kind: ClassVar[str] = "infer"
    names: tuple[str, ...]
    labels: tuple[tuple[object, ...], ...]
    l: int  # noqa: E741 - the paper's letter
    design: Design
    salt: int
    histograms: SubsetHistograms
    direct: Direct | None

    @property
    def subsets(self) -> int:
        """How many random subsets, or groups."""
        return len(self.histograms.parts[0])

    def minterm(self, literals: Mapping[str, object]) -> Estimate:
        """The share of all rows in which these attributes have these values: `{"smoker": True, "city": "Lod"}`.

        Up to l attributes as measured over all people; up to 2l inferred.

        Raises:
            QuestionError: `bad-parameter`: an unknown attribute or value, or too many attributes.
        """
        _, cell = self._literals(literals)
        table = self.table(tuple(literals))
        return Estimate(float(table.values[cell]), float(table.standard_error[cell]))

    def table(self, names: Sequence[str]) -> Probabilities:
        """The shares of all minterms of up to 2l attributes, in this order, with their standard errors.

        Raises:
            QuestionError: `bad-parameter`: an unknown attribute, or too many.
        """
        places = self._places(names)
        order = tuple(sorted(places))
        turned = tuple(order.index(place) for place in places)
        present = tuple(slice(-1) for _ in places)  # without the cells of the missing
        values, errors = (found[present].transpose(turned) for found in self._estimated(order))
        return Probabilities(tuple(names), tuple(self.labels[place] for place in places), values, errors)

    def function(self, names: Sequence[str], rule: Callable[..., bool]) -> Estimate:
        """The share of rows of which a rule on up to 2l attributes holds, summed over its minterms [S3.11].

        The standard error is the sum of theirs, which holds however they depend on each other.

        Raises:
            QuestionError: `bad-parameter`: an unknown attribute, or too many.
        """
        table = self.table(names)
        chosen = [bool(rule(*cell)) for cell in itertools.product(*table.labels)]
        return Estimate(float(table.values.ravel()[chosen].sum()), float(table.standard_error.ravel()[chosen].sum()))

    def implication(
        self, a: Mapping[str, object], b: Mapping[str, object], method: Literal["regression", "heavy"] = "regression"
    ) -> Implication:
        """Whether a makes b likelier, and by how much, for minterms of up to l attributes each [S3.12].

        Args:
            a: Literals, such as `{"smoker": True}`.
            b: Literals of other attributes.
            method: `regression` of b's excess on a's over all subsets, or `heavy` subsets alone, as in the paper.

        Raises:
            QuestionError: `bad-parameter`: attributes in both, unknown ones, or too many.
        """
        checked(method in ("regression", "heavy"), "method is regression or heavy.")
        (one, first), (other, second) = self._literals(a), self._literals(b)
        checked(not set(one) & set(other), "An attribute is in both minterms.")
        checked(max(len(one), len(other)) <= self.l, f"A minterm here has at most {self.l} attributes.")
        held = self.histograms.pair(tuple(sorted(one)), tuple(sorted(other)))
        checked(held is not None, "No two histograms hold these minterms.")
        assert held is not None  # noqa: S101 - for the type checker
        x = single(self.histograms.series(tuple(sorted(one)), held[0]), self._cell(one, first))
        y = single(self.histograms.series(tuple(sorted(other)), held[1]), self._cell(other, second))
        g = self.subsets
        part = 1 / 4 if self.design == "halves" else (1 - 1 / g) / g
        return (by_heavy if method == "heavy" else by_regression)(x, y, self.histograms.people, part)

    def _cell(self, places: Sequence[int], codes: Sequence[int]) -> int:
        """The number of a minterm's cell among those of its attributes, in their order."""
        order = sorted(range(len(places)), key=lambda i: places[i])
        sizes = tuple(len(self.labels[places[i]]) + 1 for i in order)
        return int(np.ravel_multi_index(tuple(codes[i] for i in order), sizes))

    def _estimated(self, places: Places) -> tuple[Floats, Floats]:
        """Shares and standard errors by some attributes, in their own order, the missing last."""
        sizes = tuple(len(self.labels[place]) + 1 for place in places)
        if len(places) <= self.l:
            own = self.histograms.series(places, self.histograms.holding(places))
            return own.chances.reshape(sizes), np.sqrt(own.share_noise).reshape(sizes)
        estimated = from_groups if self.design == "groups" else from_halves
        found = []
        for (one, other), (first, second) in self.histograms.splits(places):
            own, rest = self.histograms.series(one, first), self.histograms.series(other, second)
            order = (*one, *other)
            turned = tuple(order.index(place) for place in places)
            shape = tuple(len(self.labels[place]) + 1 for place in order)
            values, errors = estimated(own, rest, self.histograms.people)
            found.append((values.reshape(shape).transpose(turned), errors.reshape(shape).transpose(turned)))
        return merged(found)

    def _places(self, names: Sequence[str]) -> Places:
        most = 2 * self.l
        checked(
            not isinstance(names, str) and 0 < len(names) <= most and len(set(names)) == len(names),
            f"Name 1 to {most} different attributes.",
        )
        for name in names:
            checked(name in self.names, f"{str(name)[:80]!r} is none of the attributes {', '.join(self.names)}.")
        return tuple(self.names.index(name) for name in names)

    def _literals(self, literals: Mapping[str, object]) -> tuple[Places, tuple[int, ...]]:
        checked(isinstance(literals, Mapping), 'A minterm is given as {"attribute": value}.')
        places = self._places(tuple(literals))
        pairs = zip(places, literals.values(), strict=True)
        return places, tuple(code_of(self.labels[place], value, self.names[place]) for place, value in pairs)

    def title(self) -> str:
        """One line for people."""
        return f"Statistics of {2 * self.l} of {', '.join(self.names)}, inferred from those of {self.l}"

    def tables(self) -> dict[str, pa.Table]:
        """The noisy histograms over all people and over the subsets, and every inferred table for readers."""
        return {
            "all-people": self._histograms(None),
            "subsets": self._histograms(self.subsets),
            "inferred": below(map(self.table, self._all()), "attributes", "minterm"),
        }

    def _histograms(self, subsets: int | None) -> pa.Table:
        found = self.histograms.whole if subsets is None else self.histograms.parts
        sets = [" x ".join(self.names[place] for place in own) for own in self.histograms.sets]
        columns: dict[str, object] = {
            "attributes": pa.array([name for name, cells in zip(sets, found, strict=True) for _ in range(cells.size)])
        }
        if subsets is not None:
            columns["subset"] = np.concatenate([np.repeat(np.arange(subsets), c.size // subsets) for c in found])
        columns["cell"] = np.concatenate([np.tile(np.arange(c.size // (subsets or 1)), subsets or 1) for c in found])
        columns["value"] = np.concatenate([cells.ravel() for cells in found])
        return pa.table(columns)

    def _all(self, most: int = MAX_COMPARED_TABLES) -> list[tuple[str, ...]]:
        return list(itertools.islice(itertools.combinations(self.names, 2 * self.l), most))

    def facts(self) -> dict[str, object]:
        """Attributes, design, noise, and the comparison with direct measurement."""
        direct = self.direct
        return {
            "names": list(self.names),
            "labels": labels_to_json(self.labels),
            "l": self.l,
            "design": self.design,
            "subsets": self.subsets,
            "salt": self.salt,
            "whole_noise": self.histograms.whole_noise,
            "part_noise": self.histograms.part_noise,
            "size": self.histograms.size,
            "direct": None if direct is None else [direct.histograms, direct.standard_error, direct.inferred],
        }

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The inference that was saved as these."""
        labels = labels_from_json(facts["labels"])
        names, l = tuple(map(str, facts["names"])), int(facts["l"])  # noqa: E741 - the paper's letter
        design, subsets = facts["design"], int(facts["subsets"])
        if design not in ("groups", "halves") or len(names) != len(labels):
            raise unreadable()
        sets = tuple(itertools.combinations(range(len(names)), l))
        shapes = [tuple(len(labels[place]) + 1 for place in own) for own in sets]
        size = facts["size"]
        histograms = SubsetHistograms(
            sets=sets,
            whole=divided(tables["all-people"], shapes),
            parts=divided(tables["subsets"], [(subsets, *shape) for shape in shapes]),
            whole_noise=float(facts["whole_noise"]),
            part_noise=float(facts["part_noise"]),
            size=None if size is None else int(size),
        )
        told = facts["direct"]
        direct = None if told is None else Direct(int(told[0]), float(told[1]), float(told[2]))
        return cls(
            paid=paid,
            names=names,
            labels=labels,
            l=l,
            design=design,
            salt=int(facts["salt"]),
            histograms=histograms,
            direct=direct,
        )

    def charts(self) -> list[Chart]:
        """A picture for each of the first inferred tables."""
        found = []
        for own in self._all(MAX_CHARTS):
            table = self.table(own)
            said = f"Shares of all rows, with two standard errors. {self.direct or ''}"
            found.append(table.chart(said, 2 * table.standard_error))
        return found


@shows_progress
@timed
def infer(
    db: Oracle,
    attributes: list[str],
    l: int = 1,  # noqa: E741 - the paper's letter
    subsets: int | None = None,
    *,
    design: Literal["groups", "halves"] = "groups",
    bins: int = 4,
    salt: int = 0,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Inference:
    """Publish statistics of every l attributes on random subsets of the people, and infer those of 2l attributes.

    Measuring the 2l-attribute histograms themselves (`contingency`) is nearly always better: `direct` says by how much.

    Args:
        db: The database, or any Oracle.
        attributes: Names of the columns, at least 2l.
        l: How many attributes a measured histogram has.
        subsets: How many random subsets, or groups; left open, what makes the errors smallest at the declared size,
            of ten people a group or more.
        design: `groups` divides the people once, for the price of one histogram each; `halves` takes random halves, as
            in the paper, each at its own price.
        bins: How many intervals a number is divided into.
        salt: Which random subsets.
        spend: What it may cost: Epsilon for Laplace noise, Rho or EpsilonDelta for Gaussian.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: one question, the spend. A person is in one cell of a histogram: (t + 1) C(k, l) of them for t halves [X1],
        2 C(k, l) for groups; under replace_one twice that in L1. A public hash of the person names the subsets (SR11).
    Accuracy: sqrt((p_a + 4R/n)(p_b + 4R/n) + p_ab^2)/sqrt(t) for a minterm from t halves, R the variance of the noise;
        for g groups p(1 - p) stands for p and g for 4. Each estimate carries its own.
    Source: [S3.11], [S3.12]; docs/theory/inference.md.

    Raises:
        QuestionError: `needs-position`: rows without a person column cannot be put into subsets under add_remove.
            `bad-parameter`, `bad-question`, `unknown-column`, `too-large`; nothing is spent.
        BudgetExceeded: `budget-exceeded`; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    checked(design in ("groups", "halves"), "design is groups or halves.")
    whole(l, "l", 1, 4)
    whole(bins, "bins", 1, 1024)
    whole(salt, "salt", -(2**40), 2**40)
    if subsets is not None:
        whole(subsets, "subsets", 2, MAX_SUBSETS)
    if spending.facts.unit.rows > 1:
        raise QuestionError(
            "bad-question",
            "Counts over subsets of people tell what holds together of a person, not of a row.",
            "Take a unit of one row, or measure the histograms themselves: release.contingency(...).",
        )
    words = replace(ATTRIBUTES, most=MAX_ATTRIBUTES, limit=f"Name {2 * l} to {MAX_ATTRIBUTES} attributes.")
    schema = spending.facts.schema
    items = tuple(Attribute(name, domain_of(name, schema), bins) for name in listed(attributes, words, 2 * l))
    asked = _asked(items, l, spending, design=design, subsets=subsets, salt=salt)
    plan = spending.foresee(asked.question)
    spending.plan(1, asked.question)
    whole_noise, part_noise = asked.noise(plan)
    measured, parts = asked.read(spending.several(asked.question))
    histograms = SubsetHistograms(asked.sets, measured, parts, whole_noise, part_noise, spending.facts.size)
    found = Inference(
        paid=Paid.by(spending),
        names=tuple(item.name for item in items),
        labels=tuple(item.labels for item in items),
        l=l,
        design=design,
        salt=salt,
        histograms=histograms,
        direct=None,
    )
    return _compared(found, asked, spending)


def _asked(
    items: tuple[Attribute, ...],
    l: int,  # noqa: E741
    spending: SpendPlan,
    *,
    design: Design,
    subsets: int | None,
    salt: int,
) -> SubsetQuestion:
    """The histograms with a number of subsets; of groups, where it is left open, the best for the declared size.

    From public facts alone.
    """
    size = spending.facts.size
    if subsets is None and design == "halves":
        subsets = min(USUAL_HALVES, max(MAX_VALUES // math.comb(len(items), l) - 1, 2))
    elif subsets is None and size is not None:
        trial = SubsetQuestion(items, l, design, 2, salt)
        _, noise = trial.noise(spending.foresee(trial.question))
        share = math.exp(float(np.mean([math.log(item.size) for item in items]))) ** -l
        subsets = best_groups(size, share, noise)
    return SubsetQuestion(items, l, design, USUAL_GROUPS if subsets is None else subsets, salt)


def _compared(found: Inference, asked: SubsetQuestion, spending: SpendPlan) -> Inference:
    """The release with what direct measurement would give; free, from the plan of one 2l histogram at its part."""
    tables = found._all()  # noqa: SLF001 - its own
    number = math.comb(len(found.names), 2 * found.l)
    places = tuple(range(2 * found.l))
    try:
        plan = spending.foresee(asked.histogram(places), Fraction(1, number))
    except SulqError:
        return found
    error = plan.parts[0].noise[0].deviation / found.histograms.people
    squares = np.concatenate([found.table(own).standard_error.ravel() ** 2 for own in tables])
    direct = Direct(number, error, float(np.sqrt(squares.mean())))
    return replace(found, direct=direct)
