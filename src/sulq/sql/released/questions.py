"""Statistics to questions: the fewest sums that give them all, and how the spend is divided over those.

Equal sums are asked once. One count serves COUNT, SUM, AVG and VAR of an
expression: under pure loss its one-sided sums hold all of them at the price of one
sum (SR18); COUNT(*) joins them by a term for the rows without a value, which costs
nothing more. Quantiles and extremes of one value are asked together.
Nothing here sees a row; a mistake costs accuracy, never privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.answers import wire
from sulq.answers.readings.estimators import CentredMean, Mean, Spread
from sulq.answers.readings.joint import Correlation, PairCovariance, PublicNumber, SpreadMean, WeightedSum
from sulq.answers.readings.regression import Determination, Intercept, PairMean, PairProduct, Slope, X, Y
from sulq.answers.readings.sampling import RowSum, sum_reading
from sulq.answers.readings.sized import SPREAD_SHARES, Average, sized_spread
from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.relation import Distinct, PerPerson, Relation, Select, Where
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import MAX_BITS, bounded, rounding, scalar_grid
from sulq.language.shape import shape
from sulq.sql.released.columns import (
    DECLARE,
    AnswerSlice,
    ColumnReading,
    CountedRows,
    RowGroups,
    StatColumn,
    SumCollector,
    exact,
    is_whole,
    slice_at,
)
from sulq.sql.released.order_statistics import order_statistics
from sulq.sql.released.program import MOMENTS, ORDERS, PAIRS, SPREADS, Stat
from sulq.sql.rows.values import both

COUNT_WEIGHT: Final = (Fraction(366, 1000), Fraction(634, 1000))  # of a centred mean: see sulq.api.questions
KNOWN_COUNT_WEIGHT: Final = Fraction(1, 8)  # of a count, beside a sum, where the number of rows is public


def columns_of(asking: SumCollector, rows: RowGroups, stats: Sequence[Stat]) -> list[StatColumn]:
    """A column for each statistic of the groups of these rows."""
    found: dict[int, StatColumn] = {}
    bundles: dict[tuple[str, ...], list[int]] = {}
    for i, stat in enumerate(stats):
        bundles.setdefault(_bundle(stat), []).append(i)
    total = [i for i, stat in enumerate(stats) if stat.name == "rows" and stat.where is None]
    carried = False
    for _, places in sorted(bundles.items()):  # in an order of their own: the same question however they are listed
        first = stats[places[0]]
        if first.name == "rows":
            continue
        wanted = [stats[i] for i in places]
        if first.name == "persons":
            made = [_persons(asking, rows, first.where)] * len(places)
        elif first.name in PAIRS:
            made = _pairs(asking, *_over(asking, rows, first), wanted)
        else:
            plain = not first.distinct and first.where is None and not rows.open
            carries = bool(total) and plain and not carried
            made, rows_column = _one(asking, *_over(asking, rows, first), wanted, count_rows=carries)
            if rows_column is not None:
                carried = True
                found.update(dict.fromkeys(total, rows_column))
        found.update(zip(places, made, strict=True))
    for i, stat in enumerate(stats):
        if i not in found:  # COUNT(*), with or without a filter, that nothing else has brought along
            found[i] = _summed(asking, rows, rowfn.Lit(1) if stat.where is None else stat.where, whole=True)
        found[i].counted = _counted(asking, rows, stat)
        found[i].rows_each = 0 if stat.distinct or rows.open else shape(rows.over, asking.facts).rows
    return [found[i] for i in range(len(stats))]


def _counted(asking: SumCollector, rows: RowGroups, stat: Stat) -> CountedRows | None:
    """Which rows a statistic counts, where it is a count of rows or a sum of noughts and ones."""
    if stat.distinct or stat.name not in ("rows", "count", "sum"):
        return None
    conditions, schema = [rows.where, stat.where], asking.schema(rows)
    if stat.name == "count":
        conditions += [rowfn.Not(rowfn.IsMissing(stat.args[0]))] if stat.args[0].kind(schema).nullable else []
    elif stat.name == "sum":
        low, high, _ = bounded(stat.args[0], schema)
        if not is_whole(stat.args[0], schema) or low < 0 or high > 1:
            return None
    front = [condition for condition in conditions if condition is not None]
    for one in front:
        front.extend(one.items if isinstance(one, rowfn.Logic) and one.op == "and" else ())
    texts = frozenset(wire.encode(one) for one in front)
    keys = wire.encode(list(rows.keys)) if rows.keys else ""
    return CountedRows(wire.encode(rows.over), keys, texts, each=stat.name != "sum")


def _summed(asking: SumCollector, rows: RowGroups, fn: RowFn, *, whole: bool) -> StatColumn:
    """One sum as it is released."""
    lo, hi, kind = bounded(fn, asking.schema(rows))
    reading = sum_reading(lo, hi, asking.size(rows), every=not kind.nullable)
    return StatColumn((slice_at(asking.put(rows, fn)),), reading, whole=whole)


def _bundle(stat: Stat) -> tuple[str, ...]:
    """Statistics of the same values, over the same rows, are asked together."""
    kind = stat.name if stat.name in ("rows", "persons") else "pair" if stat.name in PAIRS else "one"
    return (kind, str(stat.distinct), wire.encode(stat.where), *(wire.encode(arg) for arg in stat.args))


# -- rows that are not those of the table: each person once, each value once


def _coded(key: RowFn, schema: Schema) -> RowFn:
    """A key as a column can hold it: its own labels, or their numbers where they are not all texts or whole."""
    kind = key.kind(schema)
    if isinstance(kind, Code) and {type(label) for label in kind.labels} not in ({str}, {int}):
        return rowfn.Relabel(key, tuple(range(kind.size)))
    return key


def _derived(rows: RowGroups, schema: Schema, where: RowFn | None) -> tuple[Relation, list[tuple[str, RowFn]]]:
    """The rows of a filter, and the columns that hold their keys."""
    condition = both(rows.where, where)
    source = rows.over if condition is None else Where(rows.over, condition)
    return source, [(f"k{i}", _coded(key, schema)) for i, key in enumerate(rows.keys)]


def _persons(asking: SumCollector, rows: RowGroups, where: RowFn | None) -> StatColumn:
    """Different people of each group: one row for each person and group, counted."""
    if rows.open:
        if where is not None:
            raise QuestionError(
                "open-keys", "People are counted with a filter only in groups known in advance.", DECLARE
            )
        return StatColumn((AnswerSlice(asking.place(rows), (0,)),), RowSum(persons=True), whole=True)
    source, columns = _derived(rows, asking.schema(rows), where)
    names = tuple(name for name, _ in columns)
    people = PerPerson(Select(source, tuple(columns)) if columns else source, names, ())
    groups = RowGroups(people, None, tuple(map(rowfn.Col, names)))
    return replace(_summed(asking, groups, rowfn.Lit(1), whole=True), reading=RowSum(persons=True))


def _over(asking: SumCollector, rows: RowGroups, stat: Stat) -> tuple[RowGroups, tuple[RowFn, ...]]:
    """The rows and values of a statistic: a filter makes values missing, DISTINCT leaves one row for each value."""
    if stat.distinct:
        if rows.open:
            raise QuestionError("open-keys", "DISTINCT is asked of groups that are known in advance.", DECLARE)
        schema = asking.schema(rows)
        source, columns = _derived(rows, schema, stat.where)
        values = [(f"x{i}", _coded(arg, schema)) for i, arg in enumerate(stat.args)]
        over = Distinct(Select(source, (*columns, *values)))
        keys, args = (tuple(rowfn.Col(name) for name, _ in several) for several in (columns, values))
        return RowGroups(over, None, keys), args
    if stat.where is None:
        return rows, stat.args
    schema = asking.schema(rows)
    return rows, tuple(_filtered(arg, stat.where, schema) for arg in stat.args)


def _filtered(fn: RowFn, where: RowFn, schema: Schema) -> RowFn:
    """A value, missing where the filter is not true; of what is no number only whether it is there."""
    if isinstance(fn.kind(schema), (Scalar, Truth)):
        return rowfn.Case(((where, fn),))
    return rowfn.Case(((rowfn.Logic("and", (where, rowfn.Not(rowfn.IsMissing(fn)))), rowfn.Lit(1)),))


# -- statistics of one value


def _one(
    asking: SumCollector, rows: RowGroups, args: tuple[RowFn, ...], wanted: list[Stat], *, count_rows: bool
) -> tuple[list[StatColumn], StatColumn | None]:
    """Leaves for all that is wanted of one value and, if it may bring it along, the number of rows."""
    (fn,) = args
    names = {stat.name for stat in wanted if stat.name in MOMENTS}
    moments, total = _moments(asking, rows, fn, names, count_rows=count_rows)
    ordered = [(stat.name, stat.q) for stat in wanted if stat.name in ORDERS]
    orders = dict(zip(ordered, order_statistics(asking, rows, fn, ordered), strict=True)) if ordered else {}
    made = [moments[s.name] if s.name in MOMENTS else orders[s.name, s.q] for s in wanted]
    return made, total


def _moments(
    asking: SumCollector, rows: RowGroups, fn: RowFn, names: set[str], *, count_rows: bool
) -> tuple[dict[str, StatColumn], StatColumn | None]:
    """The fewest sums for a count, a sum, a mean and a spread of one value."""
    schema = asking.schema(rows)
    spread = bool(names & set(SPREADS))
    if not names:
        return {}, None
    if not spread and "mean" not in names and not {"count", "sum"} <= names and not (count_rows and "sum" in names):
        return _single(asking, rows, fn, names, schema), None
    lo, hi, kind = bounded(fn, schema)
    if lo == hi:
        return _constant(asking, rows, fn, names, lo), None
    whole = is_whole(fn, schema)
    split = count_rows and kind.nullable
    size = None if kind.nullable else asking.size(rows)
    if size is not None and names <= set(SPREADS) and not count_rows:
        return _spreads(asking, rows, fn, names, size), None
    if size is not None and not spread:
        found = _average(asking, rows, fn, (lo, hi), size, counted=count_rows or "count" in names)
    elif asking.gaussian and not spread:
        found = _centred(asking, rows, fn, (lo, hi), schema, split=split)
    else:
        found = _bernstein(asking, rows, fn, kind, schema, degree=2 if spread else 1, split=split)
    readings, slices, total = found
    wholes = {"count", "sum"} if whole else {"count"}
    made = {name: StatColumn((slices[name],), readings[name], whole=name in wholes) for name in names}
    return made, StatColumn((slices["rows"],), total, whole=True) if count_rows else None


def _single(asking: SumCollector, rows: RowGroups, fn: RowFn, names: set[str], schema: Schema) -> dict[str, StatColumn]:
    """A count alone, or a sum alone: exact."""
    made = {}
    if "count" in names:
        value = rowfn.Not(rowfn.IsMissing(fn)) if fn.kind(schema).nullable else rowfn.Lit(1)
        made["count"] = _summed(asking, rows, value, whole=True)
    if "sum" in names:
        bounded(fn, schema)
        made["sum"] = _summed(asking, rows, fn, whole=is_whole(fn, schema))
    return made


def _constant(
    asking: SumCollector, rows: RowGroups, fn: RowFn, names: set[str], value: Fraction
) -> dict[str, StatColumn]:
    """Of a value that is constant by its bounds only the count is not known."""
    part = slice_at(asking.put(rows, rowfn.Not(rowfn.IsMissing(fn))))
    given: dict[str, ColumnReading] = {
        "count": RowSum(), "sum": WeightedSum((value,), (value**2,)), "mean": PublicNumber(value),
    }  # fmt: skip
    zero = PublicNumber(Fraction(0))  # a spread
    return {name: StatColumn((part,), given.get(name, zero), whole=name == "count") for name in names}


Found = tuple[dict[str, ColumnReading], dict[str, AnswerSlice], ColumnReading]


def _average(
    asking: SumCollector, rows: RowGroups, fn: RowFn, ends: tuple[Fraction, Fraction], size: int, *, counted: bool
) -> Found:
    """The sum alone, over the public number of rows: the paper's mean [S2.3]; a count, if wanted, for little more."""
    lo, hi = ends
    lattice = bounded(fn, asking.schema(rows))[2].step
    total = slice_at(asking.put(rows, fn))
    count = slice_at(asking.put(rows, rowfn.Lit(1), KNOWN_COUNT_WEIGHT)) if counted else total
    mean = Average(size, lo, hi, rounding(lattice, scalar_grid(lo, hi, lattice)[0]))
    rows_read = RowSum(size=size)
    readings: dict[str, ColumnReading] = {"count": rows_read, "sum": RowSum(lo, hi, size), "mean": mean}
    return readings, {"count": count, "sum": total, "mean": total, "rows": count}, rows_read


def _spreads(asking: SumCollector, rows: RowGroups, fn: RowFn, names: set[str], size: int) -> dict[str, StatColumn]:
    """Spreads alone, of a public number of rows: two sums."""
    schema, shares = asking.schema(rows), SPREAD_SHARES[not asking.gaussian]
    values, _ = sized_spread(schema, fn, size)
    part = slice_at(*(asking.put(rows, value, 2 * share) for value, share in zip(values, shares, strict=True)))
    made = {}
    for name in names:
        _, reading = sized_spread(schema, fn, size, root=name.startswith("std"), ddof=int(name.endswith("samp")))
        made[name] = StatColumn((part,), reading)
    return made


def _bernstein(
    asking: SumCollector, rows: RowGroups, fn: RowFn, kind: Scalar, schema: Schema, *, degree: int, split: bool
) -> Found:
    """All moments up to a degree from terms that add up to the same for each row (SR18).

    `split` asks for the rows without a value too: one more term, the last.
    """
    terms = rowfn.Bernstein(fn, degree, missing=split)
    step, low, high = terms.span(schema)
    a, b = low * step, high * step
    w, away = b - a, rounding(kind.step, step)
    place = asking.put(rows, terms, degree)
    width = degree + 1
    part = slice_at(place, picked=tuple(range(width))) if split else slice_at(place)
    one = 1 / w**degree
    # The square of a value in [a, b] is at most (a + b) x - a b, which is what degree 1 can tell.
    squares = (b * b / w, a * a / w) if degree == 1 else (one * b * b, one * a * b, one * a * a)
    readings: dict[str, ColumnReading] = {
        "count": WeightedSum((one,) * width, (one,) * width),
        "sum": WeightedSum((b / w, a / w) if degree == 1 else (one * b, one * (a + w / 2), one * a), squares),
        "mean": Mean(a, b, away) if degree == 1 else SpreadMean(a, b, away),
    }
    for name in SPREADS:
        readings[name] = Spread(w, root=name.startswith("std"), ddof=int(name.endswith("samp")), rounding=away)
    every = (one,) * (width + split)
    return readings, dict.fromkeys(readings, part) | {"rows": slice_at(place)}, WeightedSum(every, every)


def _centred(
    asking: SumCollector, rows: RowGroups, fn: RowFn, ends: tuple[Fraction, Fraction], schema: Schema, *, split: bool
) -> Found:
    """A count and the sum of the distance from the middle: best for Gaussian noise (SR18).

    `split` counts the rows with and without a value: (missing, not missing) are the
    one-sided sums of a number in [0, 1], at the price of one count.
    """
    lo, hi = ends
    middle = exact((lo + hi) / 2)
    away = fn - middle
    present: RowFn = rowfn.Not(rowfn.IsMissing(fn)) if fn.kind(schema).nullable else rowfn.Lit(1)
    count = asking.put(rows, rowfn.Bernstein(rowfn.IsMissing(fn)) if split else present, 2 * COUNT_WEIGHT[0])
    total = asking.put(rows, away, 2 * COUNT_WEIGHT[1])
    least, most, kind = bounded(away, schema)
    grain = rounding(kind.step, scalar_grid(least, most, kind.step)[0])
    alone = slice_at(count, picked=(1,) if split else None)
    pair = slice_at(count, total, picked=(1, 2) if split else None)
    centre, every = Fraction(middle), (Fraction(1),) * (1 + split)
    readings: dict[str, ColumnReading] = {
        "count": RowSum(),
        "sum": WeightedSum((centre, Fraction(1)), ((lo + hi) * centre - lo * hi, lo + hi)),
        "mean": CentredMean(lo, hi, Fraction(middle), grain),
    }
    slices = {"count": alone, "sum": pair, "mean": pair, "rows": slice_at(count)}
    return readings, slices, WeightedSum(every, every)


# -- statistics of two values


def _pairs(asking: SumCollector, rows: RowGroups, args: tuple[RowFn, ...], wanted: list[Stat]) -> list[StatColumn]:
    """Covariances, the correlation and the line of two values, over the rows where both are there."""
    schema = asking.schema(rows)
    middles, halves = [], []
    for fn in args:
        lo, hi, _ = bounded(fn, schema)
        middles.append(float((lo + hi) / 2))
        halves.append(Fraction(float((hi - lo) / 2) or 1.0))
    scaled = tuple((fn - m) / float(h) for fn, m, h in zip(args, middles, halves, strict=True))
    vector = rowfn.Vector(scaled, MAX_BITS)
    away = rounding(None, vector.kind(schema).step)
    places = (
        asking.put(rows, rowfn.Not(rowfn.IsMissing(vector))),
        asking.put(rows, vector),
        asking.put(rows, rowfn.Outer(vector), 2),
    )
    two = (halves[0], halves[1])
    readings: dict[str, ColumnReading] = {
        "covar_pop": PairCovariance(two, 0, away),
        "covar_samp": PairCovariance(two, 1, away),
        "corr": Correlation(two, away),
    }
    line = ((Fraction(middles[0]), Fraction(middles[1])), two, away)
    readings |= {
        "regr_slope": Slope(*line),
        "regr_intercept": Intercept(*line),
        "regr_r2": Determination(*line),
        "regr_avgy": PairMean(*line, Y),
        "regr_avgx": PairMean(*line, X),
        "regr_syy": PairProduct(*line, (Y, Y)),
        "regr_sxy": PairProduct(*line, (Y, X)),
        "regr_sxx": PairProduct(*line, (X, X)),
    }
    count = StatColumn((slice_at(places[0]),), RowSum(), whole=True)
    pairs = {name: StatColumn((slice_at(*places),), reading) for name, reading in readings.items()}
    return [count if stat.name == "regr_count" else replace(pairs[stat.name]) for stat in wanted]
