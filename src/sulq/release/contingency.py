"""Contingency tables: counts by several attributes, published once, whose marginals anybody reads for ever."""

# ruff: noqa: PD011 - values here are NumPy's, not a frame's

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
import pyarrow as pa

from sulq.answers.answer import extra
from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.errors import BudgetExceeded, QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from sulq.release.base import Chart, Paid, Release, labels_from_json, labels_to_json
from sulq.release.space import ATTRIBUTES, MAX_KEYS, CellSpace, Marginal, named, places, rows
from sulq.release.tables.allocation import MAX_HELD_NUMBERS, MAX_LOOKUP_NUMBERS, Weights
from sulq.release.tables.contents import (
    Contents,
    FittedTable,
    ModelTable,
    ShiftedTable,
    noise_of,
    stored_contents,
    stored_facts,
    stored_tables,
)
from sulq.release.tables.interactions import Places
from sulq.release.tables.methods import METHODS, Measure, Method, Wish, measures, method_of, refuse, refuse_model
from sulq.release.tables.noisy_tables import NoisyCells, NoisyMarginals, NoisyTable, bound, distance, variance
from sulq.release.tables.ranges import RangeCount, conditions, counted, picked, ranged

if TYPE_CHECKING:
    import pandas

MODEL: Final = "model"
COUNTING: Final = Fraction(1, 100)  # of the spend, for the number of rows
CLEAR_NOISE_PART: Final = 0.002  # of the rows: noise so small that a fit would hardly lessen it
CLOSE_FACTOR: Final = 1.05  # as good as the best
MAX_MARGINALS: Final = 2**16
MAX_ASKED_CELLS: Final = 2**25  # cells of all asked marginals
INFLATED: Final = 0.1  # of the rows: added ones that are no more than this are few
MAX_CHARTS: Final = 20  # marginals on a page
MAX_TABLE_CELLS: Final = 2**20  # cells that are written out
UNSOLVED: Final = (
    "No solver found the table of whole counts that fits the noisy coefficients; these themselves are published, as by "
    "fourier-shift. Nothing was asked again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContingencyTable(Release):
    """A published contingency table.

    `method`: how it was made. `asked`: the marginals it was made for. `foreseen`: for each method that could have
    been used, the mean L1 distance from the truth that its noise lets expect, over the asked marginals; of `model`
    with what it leaves out, and before its fit. `notes`: what a reader should know of how it came out.
    """

    kind: ClassVar[str] = "contingency"
    names: tuple[str, ...]
    labels: tuple[tuple[object, ...], ...]
    asked: tuple[tuple[str, ...], ...]
    method: str
    foreseen: Mapping[str, float]
    contents: Contents
    notes: tuple[str, ...] = ()

    def marginal(self, names: Sequence[str]) -> Marginal:
        """Counts by these attributes, in this order, with the standard error of their noise.

        Free, and at any time. Marginals that were asked for, and smaller ones within them [S3.20]; by `cells` all.
        Those of `marginals` are as measured; those of other methods agree with each other. Of `fourier` and `model`
        the standard error is that of the measured coefficients before the fit; of `fourier`, `bound` is proved. A
        model's counts are biased towards what it takes to be likely, and no standard error tells by how much.

        Raises:
            QuestionError: `bad-parameter`: an attribute is not in the table, or the marginal was not asked for.
        """
        wanted = self._places(names)
        order = tuple(sorted(wanted))
        turned = tuple(order.index(place) for place in wanted)
        values, error = self.contents.marginal(order), np.sqrt(variance(noise_of(self.contents), order))
        added = self.shift / values.size
        own = tuple(self.labels[place] for place in wanted)
        return Marginal(tuple(names), own, values.transpose(turned), error.transpose(turned), added)

    def count(self, where: Mapping[str, object]) -> RangeCount:
        """How many rows have these values: `{"age": (20, 40), "city": "Lod"}`; free, and at any time.

        A pair is a range, both ends included, of whole cells; else a cell's label. The standard error is that of the
        sum: where cells share noise it is not that of cells apart.

        Raises:
            QuestionError: `bad-parameter`: as of `marginal`; a value is no cell's, or a range cuts one.
        """
        order = tuple(sorted(self._places(tuple(conditions(where)))))
        chosen = [picked(self.names[place], self.labels[place], where[self.names[place]]) for place in order]
        return counted(self.contents.marginal(order), noise_of(self.contents), order, chosen)

    def table(self) -> Floats:
        """The published table itself, an axis for each attribute, from which the marginals are summed.

        By `cells` noisy counts, by `fourier` whole ones, by `fourier-shift` real ones with the added rows, by `model`
        those that it expects.

        Raises:
            QuestionError: `bad-parameter`: separate marginals are of no one table. `too-large`: it has too many cells.
        """
        if isinstance(self.contents, NoisyCells):
            return self.contents.values.copy()
        if isinstance(self.contents, NoisyMarginals):
            raise QuestionError("bad-parameter", "Marginals that are measured apart are of no one table.")
        cells = int(np.prod([len(own) for own in self.labels], dtype=object))
        if cells > MAX_TABLE_CELLS:
            raise QuestionError("too-large", f"The table has {cells:,} cells; its marginals need none of them.")
        return self.contents.table()

    def to_arrow(self) -> pa.Table:
        """The published table as rows: a column for each attribute, and `value`; by `fourier` only cells that count."""
        value = named(self.names, "value")
        if isinstance(self.contents, FittedTable):
            found = stored_tables(self.contents, self.names, self.labels)["cells"]
            kept = [*range(len(self.names)), found.num_columns - 1]
            return found.select(kept).rename_columns([*self.names, value])
        columns: dict[str, object] = dict(zip(self.names, rows(self.labels), strict=True))
        return pa.table(columns | {value: self.table().ravel()})

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas frame (needs the extra `pandas`)."""
        extra("pandas", "pandas")
        return self.to_arrow().to_pandas()

    @property
    def shift(self) -> float:
        """The rows that `fourier-shift` adds, spread evenly: a constant of the noise's law; 0 by other methods."""
        return self.contents.shift if isinstance(self.contents, ShiftedTable) else 0.0

    def bound(self, names: Sequence[str], beta: float = 0.05) -> float:
        """How far a marginal by `fourier` may be off in L1, all at once but for probability beta [S3.19, S3.20].

        Raises:
            QuestionError: `bad-parameter`: another method was used; the standard error tells its accuracy.
        """
        checked(isinstance(self.contents, FittedTable), "This bound is of the method fourier; see the standard errors.")
        checked(isinstance(beta, float) and 0 < beta < 1, "beta lies strictly between 0 and 1.")
        assert isinstance(self.contents, FittedTable)  # noqa: S101 - for the type checker
        return bound(self.contents.noise, tuple(sorted(self._places(names))), beta)

    def _places(self, names: Sequence[str]) -> Places:
        found = places(names, self.names, ATTRIBUTES)
        held = isinstance(self.contents, NoisyCells) or any(set(names) <= set(asked) for asked in self.asked)
        checked(held, f"The marginal of {', '.join(names)} was not asked for, nor one that holds it.")
        return found

    def title(self) -> str:
        """One line for people."""
        return f"Contingency table of {', '.join(self.names)} by {self.method}{self._how()}"

    def _how(self) -> str:
        """What a model was fitted to."""
        if not isinstance(self.contents, ModelTable):
            return ""
        return f" of interactions of up to {self.contents.order} attributes, measured by {self.contents.measured}"

    def tables(self) -> dict[str, pa.Table]:
        """The asked marginals for a reader, and what the method keeps."""
        return {"marginals": self._marginals(), **stored_tables(self.contents, self.names, self.labels)}

    def _marginals(self) -> pa.Table:
        """All asked marginals below each other: an attribute that is not in a marginal is empty there."""
        title, value, error = (named(self.names, name) for name in ("marginal", "value", "standard_error"))
        found = [self.marginal(asked) for asked in self.asked]
        starts = np.cumsum([0, *(own.values.size for own in found)])
        columns: dict[str, object] = {}
        for name in self.names:  # one after the other: of many attributes nearly all places are empty
            column = np.full(starts[-1], None, dtype=object)
            for own, start, end in zip(found, starts, starts[1:], strict=False):
                if name in own.names:
                    column[start:end] = rows(own.labels)[own.names.index(name)]
            columns[name] = pa.array(column, pa.string())
        titles = np.repeat(np.array([" x ".join(own.names) for own in found], dtype=object), np.diff(starts))
        columns[title] = pa.array(titles, pa.string())
        columns[value] = np.concatenate([own.values.ravel() for own in found])
        columns[error] = np.concatenate([own.standard_error.ravel() for own in found])
        return pa.table(columns)

    def facts(self) -> dict[str, object]:
        """Attributes, marginals, method, and what was foreseen."""
        bounds = [self.bound(asked) for asked in self.asked] if isinstance(self.contents, FittedTable) else []
        return {
            "names": list(self.names),
            "labels": labels_to_json(self.labels),
            "asked": [list(asked) for asked in self.asked],
            "method": self.method,
            "foreseen": dict(self.foreseen),
            "bounds": bounds,
            "notes": list(self.notes),
            "kept": stored_facts(self.contents),
        }

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The table that was saved as these."""
        labels, names = labels_from_json(facts["labels"]), tuple(map(str, facts["names"]))
        asked = tuple(tuple(map(str, own)) for own in facts["asked"])
        marginals = tuple(places(own, names, ATTRIBUTES) for own in asked)
        sizes = tuple(map(len, labels))
        contents = stored_contents(str(facts["method"]), sizes, marginals, facts["kept"], tables)
        return cls(
            paid=paid,
            names=names,
            labels=labels,
            asked=asked,
            method=str(facts["method"]),
            foreseen={str(name): float(value) for name, value in facts["foreseen"].items()},
            contents=contents,
            notes=tuple(map(str, facts["notes"])),
        )

    def charts(self) -> list[Chart]:
        """A picture for each asked marginal."""
        found = []
        for asked in self.asked[:MAX_CHARTS]:
            marginal = self.marginal(asked)
            expected = distance(noise_of(self.contents), [tuple(sorted(self._places(asked)))])
            said = f"Bars show 95% intervals of the noise; expected L1 distance {expected:,.4g}."
            if isinstance(self.contents, FittedTable):
                said += f" Proved bound {self.bound(asked):,.4g}, for all marginals at once at 95%."
            if isinstance(self.contents, ModelTable):
                said += " Both are of what was measured, before the fit; the model's own error is not in them."
            found.append(marginal.chart(" ".join((said, *self.notes)), marginal.accuracy(0.05)))
        return found


@shows_progress
@timed
def contingency(
    db: Oracle,
    attributes: list[str],
    marginals: list[list[str]] | None = None,
    method: Literal["auto", "cells", "marginals", "fourier", "fourier-shift", "model"] = "auto",
    *,
    ways: int = 0,
    bins: int = 8,
    weights: Weights = "best",
    ranges: list[str] | None = None,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> ContingencyTable:
    """Publish a contingency table, from which the asked marginals can be read.

    Rows in which one of the attributes is missing, or not on its list, are not counted.

    Args:
        db: The database, or any Oracle.
        attributes: Names of the columns.
        marginals: Lists of attributes, the counts by which are wished for.
        method: `cells` (a noisy count of every cell), `marginals` (each by itself; they disagree where they
            overlap), `fourier` (one table of whole non-negative counts), `fourier-shift` (for many attributes:
            the table is never written out), `model` (a non-negative table fitted to what is best measured, for
            noise that is large) or `auto`, which takes the one of the least expected error.
        ways: All marginals of so many attributes are wished for too.
        bins: How many intervals a number is divided into.
        weights: What the coefficients' noise is divided for: `best` the marginals' distances, `variance` the sum of
            the variances of all cells, `worst` the largest of them; `even` is the paper's, all alike.
        ranges: Attributes with an order of which counts over ranges are read (`count`): the noise is divided for them.
        spend: What it may cost: Epsilon for Laplace noise, Rho or EpsilonDelta for Gaussian.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: one question, the spend; all else is made from its answer. By `model` and `auto` a second one before it,
        the number of rows, at a hundredth of the spend, unless a size is declared. The plan computes the sensitivity:
        of cells 1, of |C| marginals |C|, of |B| coefficients |B| in L1 and sqrt|B| in L2 (yes or no, even weights);
        twice or less under replace_one [X1, E46].
    Accuracy: of cells, 2^k/epsilon^2 in a cell of a one-way marginal [S3.13, E30]; of marginals, scale |C|/epsilon
        [S3.14]; of fourier [S3.19, S3.20], `bound`. `foreseen` has each method's expected mean distance.
    Source: Dwork08, section 4.2 [S3.13 to S3.21]; docs/theory/contingency.md.

    Raises:
        QuestionError, BudgetExceeded: nothing is spent; of what is `too-large`, which method fits is said.
    """
    spending, known = SpendPlan(db, spend, progress), ("auto", *METHODS, MODEL)
    checked(method in known, f"method is one of {', '.join(known)}.")
    checked(weights in get_args(Weights), f"weights is one of {', '.join(get_args(Weights))}.")
    space = CellSpace.of(attributes, spending.facts.schema, bins, ATTRIBUTES)
    wish = Wish.by(spending, space, _marginals(marginals, ways, space), weights, ranged(ranges, space, method))
    way = "fourier-shift" if ranges and method == "auto" else method
    try:
        chosen = _chosen(replace(wish, most=MAX_HELD_NUMBERS), way, spending)
    except QuestionError as error:
        if error.code != "body-too-large":  # a question that is sent has smaller tables
            raise
        chosen = _chosen(wish, way, spending)
    read, measure = chosen.made.asked(spending, chosen.part), chosen.measure
    contents = measure.modelled(chosen.made.read(read), chosen.rows) if measure else chosen.made.published(read)
    came, notes = _told(chosen.name, contents)
    return ContingencyTable(
        paid=Paid.by(spending),
        names=space.names,
        labels=tuple(item.labels for item in space.attributes),
        asked=tuple(tuple(space.names[place] for place in part) for part in wish.marginals),
        method=came,
        foreseen=chosen.foreseen,
        contents=contents,
        notes=notes,
    )


def _told(method: str, contents: Contents) -> tuple[str, tuple[str, ...]]:
    """The method that it came to, and notes: the rows that a shift adds, beside the noisy number of rows [S3.21]."""
    if not isinstance(contents, ShiftedTable):
        return method, ()
    total, shift, notes = float(contents.noise.values[()][0]), contents.shift, [UNSOLVED] * (method == "fourier")
    ratio = f"{shift / total:,.3g} times the" if total >= 1 else "more than all of the"
    said = f"{shift:,.0f} rows are added, spread evenly: {ratio} {max(total, 0.0):,.0f} rows counted with noise."
    if shift > INFLATED * total:
        said += " The table with them, and percentages of it, tell little of the data; read the values of marginals."
    return "fourier-shift", (*notes, said)


@dataclass(frozen=True, slots=True, eq=False)
class _MethodChoice:
    """The method to use, for which part of the spend; `measure` where a model is fitted to its answers.

    `rows`: their noisy number and its deviation, where it was asked.
    """

    name: str
    made: Method
    foreseen: dict[str, float]
    part: Fraction = Fraction(1)
    measure: Measure | None = None
    rows: tuple[float, float] | None = None


def _chosen(wish: Wish, method: str, spending: SpendPlan) -> _MethodChoice:
    """The method named, or the one of the least foreseen distance; from public facts and a noisy number of rows.

    Everything that could be refused is, before the rows are counted. Where no model can be fitted nothing is counted.
    """
    if method in METHODS:
        made = method_of(method, wish)
        far = distance(_foreseen(made, spending, Fraction(1)), wish.marginals)
        spending.plan(1, made.question)
        return _MethodChoice(method, made, {method: far})
    why = "A model is not fitted under a SubLinear budget." if spending.sublinear else refuse_model(wish)
    if method == MODEL and why:
        raise QuestionError("too-large", why, "Name a method that fits, or method='auto', or fewer attributes.")
    counted = spending.facts.size is None and not why
    part = 1 - COUNTING if counted else Fraction(1)
    plain = _plain(wish, spending, part) if method == "auto" else {}
    known = {each: (made, noise) for each, (made, noise, _) in plain.items()}
    ways = [] if why else measures(wish, lambda question: spending.foresee(question, part), known)
    if not ways and not plain:
        raise QuestionError("too-large", "Nothing that a model is fitted to can be asked for this.", "Spend more.")
    if not ways:
        if counted:  # nothing will be, so all is there to spend
            plain = _plain(wish, spending, Fraction(1))
        name = min(plain, key=lambda each: plain[each][2])
        spending.plan(1, plain[name][0].question)
        return _MethodChoice(name, plain[name][0], {each: far for each, (_, _, far) in plain.items()})
    spending.plan(2 if counted else 1)
    asked: tuple[float, float] | None = None  # the noisy number of rows, and its deviation
    if counted:
        released = spending.one(Sums((Lit(1),), wish.space.complete), COUNTING).released
        asked = float(released.values().flat[0]), released.noise[0].deviation
    rows = max(asked[0], 1.0) if asked else float(spending.facts.size or 1)
    best = min(ways, key=lambda way: way.foreseen(rows))
    foreseen = {each: far for each, (_, _, far) in plain.items()} | {MODEL: best.foreseen(rows)}
    name = min(foreseen, key=lambda each: foreseen[each] if each != MODEL else math.inf)
    if plain and foreseen[name] <= min(CLOSE_FACTOR * foreseen[MODEL], CLEAR_NOISE_PART * rows):
        return _MethodChoice(name, plain[name][0], foreseen, part)
    return _MethodChoice(MODEL, best.made, foreseen, part, best, asked)


def _plain(wish: Wish, spending: SpendPlan, part: Fraction) -> dict[str, tuple[Method, NoisyTable, float]]:
    """The methods that fit and publish what they measure, with what each lets expect.

    A fit is as near as its coefficients or nearer (measured, in docs/theory/contingency.md): of the two ways to
    use them `fourier` goes first.
    """
    fits = [name for name in METHODS if not refuse(wish, name)]
    fits = [name for name in fits if name != "fourier-shift" or "fourier" not in fits]
    found: dict[str, tuple[Method, NoisyTable, float]] = {}
    refused: QuestionError | BudgetExceeded = QuestionError(
        "too-large", "No method holds so large a table with such marginals.", "Ask for marginals of fewer attributes."
    )
    for name in fits:
        try:
            made = method_of(name, wish)
            noise = _foreseen(made, spending, part)
            found[name] = (made, noise, distance(noise, wish.marginals))
        except (QuestionError, BudgetExceeded) as error:
            if error.code == "body-too-large" and wish.most > MAX_LOOKUP_NUMBERS:
                raise
            refused = error
    if not found:
        raise refused
    return found


def _foreseen(made: Method, spending: SpendPlan, part: Fraction) -> NoisyTable:
    if spending.sublinear:
        spending.plan(1, made.question)  # refuses what the queries that are left do not hold
    return made.foreseen(spending.foresee(made.question, part))


def _marginals(marginals: Sequence[Sequence[str]] | None, ways: int, space: CellSpace) -> tuple[Places, ...]:
    """The asked marginals by their attributes' places, each once; counted before they are written down."""
    names = space.names
    whole(ways, "ways", 0, len(names))
    asked = () if marginals is None else marginals
    checked(
        isinstance(asked, (list, tuple)) and all(isinstance(own, (list, tuple)) and own for own in asked),
        "marginals is a list of lists of attributes, none empty.",
    )
    many = len(asked) + (math.comb(len(names), ways) if ways else 0)
    if many > MAX_MARGINALS:
        raise QuestionError(
            "too-large",
            f"These are {many:,} marginals, more than {MAX_MARGINALS:,}.",
            "Ask for those of fewer attributes (ways=2), or name some; method='cells' with one tells all others too.",
        )
    found = [tuple(sorted(places(own, names, ATTRIBUTES))) for own in asked]
    found += itertools.combinations(range(len(names)), ways) if ways else []
    checked(bool(found), "No marginals are asked for: name them, or give ways.")
    if (widest := max(map(len, found))) > MAX_KEYS:
        raise QuestionError(
            "too-large", f"A marginal of {widest} attributes is no question; {MAX_KEYS} fit.", "Ask for smaller ones."
        )
    cells = sum(map(space.size, dict.fromkeys(found)))
    if cells > MAX_ASKED_CELLS:
        raise QuestionError(
            "too-large", f"The asked marginals have {cells:,} cells; at most {MAX_ASKED_CELLS:,} fit.", "Ask for fewer."
        )
    return tuple(dict.fromkeys(found))
