"""Keys of a released table: which labels a grouped expression can have, from public facts alone.

An expression of one column with a finite declared domain is worked out on every
value of the domain, so its labels are exactly those that can occur; a condition
of WHERE on the same column leaves out the values it excludes. Of other columns the
condition bounds what the expression can be (boxes), and of an expression that the
condition names itself every value is tried. What is missing is a label of its own,
the last one, wherever a row can have it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from sulq.answers import wire
from sulq.language import domain, rowfn
from sulq.language.domain import Schema, iso_text
from sulq.language.kinds import Cells, Code, Integers, Scalar, Truth
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate, walk
from sulq.language.shape import numeric
from sulq.sql.rows import boxes
from sulq.sql.rows.values import Cell, TrialRows, few_whole_numbers

MAX_VALUES: Final = 2**16 + 1  # of a column whose every value is tried
MAX_LABELS: Final = 2**16  # of a number that is returned value by value; beyond it the key is open
MAX_EVALUATIONS: Final = 2**22  # values times nodes that are tried
MAX_NAMED_EXPRESSIONS: Final = 4  # expressions whose values are tried
MAX_COMPARED_NODES: Final = 200  # of an expression that is compared with others
CLOCKED: Final = (domain.Date, domain.Timestamp)
STRICT: Final = (
    *(rowfn.Col, rowfn.Lit, rowfn.Moment, rowfn.Arith, rowfn.Maths, rowfn.Round, rowfn.Modulo, rowfn.DatePart),
    *(rowfn.DateTrunc, rowfn.ToDate, rowfn.Clip, rowfn.Each, rowfn.Compare),
)
Label = int | float | str | bool | None
Finite = domain.Int | domain.Bool | domain.Category | domain.Date  # kinds whose every value may be tried


def finite(column: domain.Column | None) -> TypeGuard[Finite]:
    """Whether every value of a column can be tried."""
    if column is None or isinstance(column, (domain.Text, domain.Real, domain.Timestamp)):
        return False
    return column.high - column.low < MAX_VALUES


def columns(fn: RowFn) -> set[str] | None:
    """The columns a row function is made of; None where it looks at more than columns."""
    found = list(itertools.islice(walk(fn), MAX_EVALUATIONS + 1))
    if len(found) > MAX_EVALUATIONS or any(isinstance(item, (rowfn.Bucket, rowfn.Position)) for item in found):
        return None
    return {item.name for item in found if isinstance(item, rowfn.Col)}


def key(item: Cell, conditions: Sequence[RowFn], schema: Schema) -> RowFn:
    """A grouped expression as a key: closed, with all its labels, or open where they are not known."""
    names = columns(item.fn)
    bounds = [] if not names else projected(conditions, lambda fn: _within(fn, names))
    if names is not None and len(names) == 1:
        name = next(iter(names))
        column = schema.find(name)
        if finite(column):
            found = _tried(item, name, column, bounds)
            if found is not None:
                return found
    fn, possible, nameless = _bounded(item, sorted(names or ()), bounds, schema)
    kind = fn.kind(schema)
    if not isinstance(kind, Code):
        return fn
    for part in _named_by(conditions, item, schema) if conditions else ():
        known, may = _outcomes(item, part, conditions, schema)
        nameless &= may
        possible &= np.array([label in known for label in kind.labels], dtype=np.bool_)
    fn = _masked(fn, kind, possible)
    if not kind.nullable or not nameless or _never_missing(item.fn, names, conditions, schema):
        return fn
    return rowfn.OrMissing(fn)


def _within(fn: RowFn, names: set[str]) -> bool:
    found = columns(fn)
    return found is not None and found <= names


def projected(conditions: Sequence[RowFn], fits: Callable[[RowFn], bool]) -> list[RowFn]:
    """What conditions say by their fitting parts alone: true wherever they are, perhaps elsewhere too."""
    found = [_projected(condition, fits, denied=False) for condition in conditions]
    return [fn for fn in found if fn is not None]


def _projected(fn: RowFn, fits: Callable[[RowFn], bool], *, denied: bool) -> RowFn | None:
    """The same of one condition, or of its opposite where it is denied."""
    if isinstance(fn, rowfn.Not):
        return _projected(fn.item, fits, denied=not denied)
    if isinstance(fn, rowfn.Logic):
        parts = [_projected(item, fits, denied=denied) for item in fn.items]
        known = tuple(part for part in parts if part is not None)
        both = (fn.op == "and") is not denied
        if not known or (not both and len(known) < len(parts)):
            return None
        return rowfn.Logic("and" if both else "or", known)
    return None if not fits(fn) else rowfn.Not(fn) if denied else fn


def _bounded(
    item: Cell, names: list[str], conditions: list[RowFn], schema: Schema
) -> tuple[RowFn, npt.NDArray[np.bool_], bool]:
    """The key over what the conditions leave of its columns, which labels they leave, and if it can be missing."""
    conditions = [fn for fn in conditions if boxes.understood(fn)]
    everything = boxes.whole(names, schema) if conditions else None
    left = None if everything is None else boxes.allowed(conditions, everything)
    kept = left if left is not None and left.size else None
    fn, rises_with = closed(item, schema, schema if kept is None else _narrowed(schema, kept))
    kind = fn.kind(schema)
    if kept is not None and isinstance(kind, Code) and boxes.understood(fn if rises_with is None else rises_with):
        return fn, *boxes.labels(fn, kept, rises_with)
    every = np.ones(kind.size if isinstance(kind, Code) else 0, dtype=np.bool_)
    return fn, every, left is None or kept is not None


def _narrowed(schema: Schema, left: boxes.Boxes) -> Schema:
    """The columns as what is left of them: numbers between the ends of the boxes in which they are there."""
    found = []
    for name, column in schema.columns:
        i = left.names.index(name) if name in left.names else None
        here = None if i is None else ~left.missing[i]
        if here is not None and here.any() and isinstance(column, (domain.Int, domain.Real, *CLOCKED)):
            low, high = int(left.low[i][here].min()), int(left.high[i][here].max())
            kind = Scalar(low * column.step, high * column.step, column.step, clock=column.clock)
            found.append((name, numeric(kind) if isinstance(column, CLOCKED) else _like(column, low, high)))
        else:
            found.append((name, column))
    return Schema(schema.table, tuple(found))


def _like(column: domain.Int | domain.Real, low: int, high: int) -> domain.Column:
    if isinstance(column, domain.Int):
        return domain.Int(low, high)
    return domain.Real(float(low * column.step), float(high * column.step), float(column.step))


def _masked(fn: RowFn, kind: Code, possible: npt.NDArray[np.bool_]) -> RowFn:
    """A key without the labels that no row can have; as it is where none would be left, or labels are no constants."""
    constants = all(isinstance(label, (int, float, str)) for label in kind.labels)
    if possible.all() or not possible.any() or not constants:
        return fn
    kept = [cast("Label", label) if here else None for label, here in zip(kind.labels, possible.tolist(), strict=True)]
    return rowfn.Relabel(fn, tuple(kept))


def _named_by(conditions: Sequence[RowFn], item: Cell, schema: Schema) -> list[RowFn]:
    """The expressions of few values that the key is made of and a condition speaks of."""
    plain = (rowfn.Col, rowfn.Lit)
    said = {wire.encode(fn) for condition in conditions for fn in _walk(condition) if not isinstance(fn, plain)}
    made = [fn for fn in _walk(item.fn) if not isinstance(fn, plain) and _few(fn, schema)]
    return [fn for fn in made if wire.encode(fn) in said and _over(item.fn, fn)][:MAX_NAMED_EXPRESSIONS]


def _walk(fn: RowFn) -> list[RowFn]:
    """A row function and all it is made of; nothing where that is too much to compare with others."""
    found = list(itertools.islice(walk(fn), MAX_COMPARED_NODES + 1))
    return found if len(found) <= MAX_COMPARED_NODES else []


def _few(fn: RowFn, schema: Schema) -> bool:
    kind = fn.kind(schema)
    return isinstance(kind, (Truth, Code)) or few_whole_numbers(kind, MAX_VALUES)


def _over(fn: RowFn, part: RowFn) -> bool:
    """Whether a row function is made of constants and a part, in whatever place it stands."""
    text = wire.encode(part)

    def made(inner: RowFn) -> bool:
        if type(inner) is type(part) and wire.encode(inner) == text:
            return True
        return not isinstance(inner, (rowfn.Col, rowfn.Bucket, rowfn.Position)) and all(map(made, inner.parts()))

    return made(fn)


def _outcomes(item: Cell, part: RowFn, conditions: Sequence[RowFn], schema: Schema) -> tuple[set[object], bool]:
    """The labels of an expression over the values of its part that conditions leave, and if it can be missing."""
    bounds = projected(conditions, lambda fn: bool(_walk(fn)) and _over(fn, part))
    kind, text = part.kind(schema), wire.encode(part)
    low, high = (math.ceil(kind.lo), math.floor(kind.hi)) if isinstance(kind, Scalar) else (0, 1)  # type: ignore[arg-type]
    values = _every(low, kind.size - 1 if isinstance(kind, Code) else high)
    values = values.astype({Scalar: np.float64, Truth: np.bool_}.get(type(kind), np.int64))
    frame = TrialRows(schema, len(values))
    for fn in (item.fn, *bounds):
        for inner in _walk(fn):
            if type(inner) is type(part) and wire.encode(inner) == text:
                frame.seen[id(inner)] = Cells(values, _last(values), inner)
    labels, nameless = _evaluated(item, frame, bounds, nullable=kind.nullable)
    return set(labels), nameless


def _every(low: int, high: int) -> Integers:
    """Every value from low to high, and one more that stands for a missing one."""
    return np.append(np.arange(low, high + 1, dtype=np.int64), low)


def _last(values: Integers) -> npt.NDArray[np.bool_]:
    """Which of these values is the missing one."""
    found: npt.NDArray[np.bool_] = np.arange(len(values)) == len(values) - 1
    return found


def _tried(item: Cell, name: str, column: Finite, conditions: list[RowFn]) -> RowFn | None:
    """The labels of an expression of one column, by trying all its values; None where that says nothing."""
    if isinstance(item.fn, rowfn.Col) and not conditions and isinstance(column, (domain.Int, domain.Category)):
        own: RowFn = item.fn if isinstance(column, domain.Category) else rowfn.Each(item.fn)
        return rowfn.OrMissing(own) if column.missing else own  # each value is its own label: nothing to try
    values = _every(column.low, column.high)
    frame = TrialRows(Schema("", ((name, column),)), len(values), lambda _: Cells(values, _last(values)))
    labels, nameless = _evaluated(item, frame, conditions, nullable=column.missing)
    different = set(labels) - {None}
    many = len(different) > MAX_LABELS and not isinstance(column, domain.Category)
    if not different or many:
        return None
    base: RowFn = rowfn.Col(name) if isinstance(column, domain.Category) else rowfn.Each(rowfn.Col(name))
    if labels[-1] is not None:  # the expression has a value even where the column has none
        renamed: RowFn = rowfn.Relabel(rowfn.OrMissing(base), tuple(labels))
    else:
        kind = base.kind(frame.schema)
        same = isinstance(kind, Code) and labels[:-1] == list(kind.labels)
        renamed = base if same else rowfn.Relabel(base, tuple(labels[:-1]))
    return rowfn.OrMissing(renamed) if nameless else renamed


def _evaluated(
    item: Cell, frame: TrialRows, conditions: Sequence[RowFn], *, nullable: bool
) -> tuple[list[Label], bool]:
    """The label of each row that the conditions leave, None of the others, and whether one of them has none."""
    cells = evaluate(item.fn, frame)
    kept = np.ones(frame.size, dtype=np.bool_)
    kept[-1] = nullable
    for condition in conditions:
        holds = evaluate(condition, frame)
        kept &= holds.values.astype(np.bool_)
        kept &= True if holds.missing is None else ~holds.missing
    gone = np.zeros(frame.size, dtype=np.bool_) if cells.missing is None else cells.missing
    shown = zip(cells.values.tolist(), (kept & ~gone).tolist(), strict=True)
    return [_label(item, value) if here else None for value, here in shown], bool((kept & gone).any())


def _label(item: Cell, value: object) -> Label:
    """One value as it is shown: a whole number, a date's text, a category's name."""
    kind = item.kind
    if isinstance(kind, Code):
        return cast("Label", kind.labels[int(cast("int", value))])
    if isinstance(kind, Truth):
        return bool(value)
    if isinstance(kind, Scalar):
        number = cast("float", value)
        if kind.clock is not None:
            return iso_text(int(number), kind.clock)
        return int(number) if number == int(number) else number
    return str(value)


def closed(item: Cell, schema: Schema, left: Schema) -> tuple[RowFn, RowFn | None]:
    """The key of an expression of several columns, or of one that is not finite; open where no list of labels is.

    `left`: the same columns as far as rows that count can have them. Beside the key what
    it rises with, where it is made of that.
    """
    fn, kind = item.fn, item.fn.kind(left)
    if not isinstance(kind, Scalar):
        return rowfn.Each(fn) if isinstance(kind, Truth) else fn, None
    chosen = _constant_case(fn)
    if chosen is not None:
        return chosen, None
    if isinstance(fn, rowfn.DateTrunc):
        inner = fn.item.kind(left)
        few = isinstance(inner, Scalar) and _periods(fn.part, inner) <= MAX_LABELS
        return (rowfn.periods(fn.part, fn.item, left), fn.item) if few else (fn, None)
    if not few_whole_numbers(kind, MAX_LABELS) or kind.lo is None or kind.hi is None or kind.clock == "timestamp":
        return fn, None
    if kind.clock == "date":
        return rowfn.periods("day", fn, left), fn
    low, high = math.ceil(kind.lo), math.floor(kind.hi)
    whole = fn.kind(schema)
    narrower = not isinstance(whole, Scalar) or (kind.lo, kind.hi) != (whole.lo, whole.hi)
    return rowfn.Each(rowfn.Clip(fn, low, high) if narrower and low <= high else fn), None


def _periods(part: str, kind: Scalar) -> int:
    """About how many periods a range of dates holds."""
    if kind.lo is None or kind.hi is None:
        return MAX_LABELS + 1
    days = {"year": 365, "quarter": 90, "month": 28, "week": 7}.get(part, 1)
    unit = 1 if kind.clock == "date" else domain.MICROSECONDS
    if kind.clock == "timestamp" and part in ("hour", "minute", "second"):
        unit = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}[part]
    return int((kind.hi - kind.lo) / (days * unit)) + 1


def _constant_case(fn: RowFn) -> rowfn.Choice | None:
    """CASE with constant numbers as results: its labels are those numbers and no others."""
    if not isinstance(fn, rowfn.Case):
        return None
    results = [*(then for _, then in fn.branches), *([] if fn.otherwise is None else [fn.otherwise])]
    numbers = [then.value for then in results if isinstance(then, rowfn.Lit) and isinstance(then.value, (int, float))]
    if len(numbers) < len(results):
        return None
    values = sorted(set(numbers))
    place = {value: i for i, value in enumerate(values)}
    branches = tuple((when, place[number]) for (when, _), number in zip(fn.branches, numbers, strict=False))
    return rowfn.Choice(branches, tuple(values), None if fn.otherwise is None else place[numbers[-1]])


def _never_missing(fn: RowFn, names: set[str] | None, conditions: Sequence[RowFn], schema: Schema) -> bool:
    """Whether WHERE leaves no row in which the key is missing: each of its columns is asked for by a condition."""
    if names is None or not _strict(fn):
        return False
    return all(any(_rejects(condition, name, schema) for condition in conditions) for name in names)


def _strict(fn: RowFn) -> bool:
    """Whether a row function is missing only where one of its columns is."""
    for item in walk(fn):
        strict = isinstance(item, STRICT)
        if isinstance(item, rowfn.Arith) and item.op == "/":
            strict = isinstance(item.right, rowfn.Lit) and bool(item.right.value)
        elif isinstance(item, rowfn.Maths):
            strict = item.op not in ("sqrt", "ln", "exp")
        elif isinstance(item, rowfn.Relabel):
            strict = None not in item.labels
        if not strict:
            return False
    return True


def _rejects(condition: RowFn, name: str, schema: Schema) -> bool:
    """Whether a condition on one column is not true where that column is missing."""
    column = schema.find(name)
    if columns(condition) != {name} or column is None:
        return False
    empty = np.array([""], object) if isinstance(column, domain.Text) else np.array([column.low], np.int64)
    frame = TrialRows(Schema("", ((name, column),)), 1, lambda _: Cells(empty, np.ones(1, np.bool_)))
    found = evaluate(condition, frame)
    return bool(not found.values[0] or (found.missing is not None and found.missing[0]))
