"""How much work answering may take, foreseen from public facts alone; what may take too much is refused.

An ask that is stopped at its time limit fails, charged. Whether it is stopped must not hang on one person: so what
one person's rows can add, whatever stands in them, is held to a tenth of the limit, and a question of which that
cannot be said is refused before the debit, on every neighbour alike (T32, T74, T100).

The work of a question is a sum over its row functions: nanoseconds a row, times the rows that one person can have at
that place. The constants are those of the slowest engine on its worst row, as `benchmarks/work.py` measured them on
one processor; MARGIN is for slower and busy machines. So a question is refused on every engine or on none.

Privacy: reads declarations (kinds, `Text(longest=)`, rows of a person, a declared size) and the question; no row.
Source: docs/decisions/0027-work.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import MAX_CELL_LENGTH, Schema, Text
from sulq.language.facts import Facts
from sulq.language.kinds import Grid, Words
from sulq.language.question import Above, Choose, Holistic, OpenSums, Sums
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn.texts import ANY
from sulq.language.shape import shape

LIMIT: Final = 30.0  # seconds, where nobody set a limit: that of a service which is not told another
PART: Final = 10  # one person's rows take at most this part of the limit
MARGIN: Final = 3  # how many times slower a machine may be than the one the constants are of
TIMES: Final = 100  # the limit, that the whole may be foreseen to take: cells are rarely the worst, engines rarely slow
ROWS: Final = 10**5  # of a table whose size nobody declared
USUAL: Final = 200  # characters of a text that is not the worst

# Nanoseconds a row
NODE: Final = 25.0
SLOW: Final = 100.0  # dates, logarithms, powers, labels
CALL: Final = 3_000.0  # a function of text, where it is Python's
ITEM: Final = 12.0  # one of a list that is compared with
ENTRY: Final = 3.0  # one product of two coordinates
PLACE: Final = 6.0  # one coordinate of a vector
GROUP: Final = 200.0  # one column of rows that are told apart
# Nanoseconds a character
READ: Final = 10.0
MET: Final = 2.0  # texts that are compared
HELD: Final = 20.0  # texts that are told apart
FOUND: Final = 20.0  # a text that is looked for, and
FOUND_SIGN: Final = 1.5  # for each of its own characters
WILD_SIGN: Final = 8.0  # likewise where some of them may be any, and
ANY_SIGN: Final = 30.0  # for each that may be any
CASED: Final = 50.0
CUT: Final = 40.0
TRIMMED: Final = 25.0
TRIMMED_SIGN: Final = 1.5
JOINED: Final = 120.0

TEXTS: Final = (
    rowfn.Concat, rowfn.IndexOf, rowfn.Length, rowfn.Like, rowfn.Lowered, rowfn.StartsWith, rowfn.Substring,
    rowfn.Trimmed, rowfn.Uppered,
)  # fmt: skip
VECTORS: Final = (
    rowfn.Bernstein, rowfn.Dot, rowfn.Lookup, rowfn.Nearest, rowfn.Outer, rowfn.Scaled, rowfn.Vector,
    rowfn.WithinBall, rowfn.WithinL1,
)  # fmt: skip
SLOWER: Final = (
    rowfn.Bins, rowfn.Choice, rowfn.DatePart, rowfn.DateTrunc, rowfn.Maths, rowfn.Moment, rowfn.Power,
    rowfn.Relabel, rowfn.Round, rowfn.Route, rowfn.ToDate, rowfn.ToTimestamp, rowfn.Value,
)  # fmt: skip
Single = Sums | OpenSums | Choose | Above | Holistic


def check(questions: Iterable[Single], facts: Facts, limit: float | None) -> None:
    """Refuse what one person could make too slow and, where asks are stopped at a limit, what would be stopped anyway.

    Args:
        questions: All that is asked at one debit.
        facts: What is public.
        limit: Seconds after which an ask is stopped; None where it never is.
    """
    several = tuple(questions)
    person, cap = MARGIN * alone(several, facts), (limit or LIMIT) / PART
    if person > cap:
        raise QuestionError(
            "too-much-work",
            f"The rows of one person could make this question take {_shown(person)} s longer; at most {_shown(cap)} s, "
            "a tenth of the time limit, are left to one person.",
            "Ask for fewer or shorter patterns, or in several questions; or have the owner declare shorter texts, "
            "Text(longest=...), or fewer rows a person.",
        )
    if limit is None:
        return
    everyone = whole(several, facts)
    if everyone > limit * TIMES:
        raise QuestionError(
            "too-much-work",
            f"This question is foreseen to take up to {_shown(everyone)} s, far more than its time limit of "
            f"{_shown(limit)} s.",
            "Ask for less at once; or have the owner declare the table's size, if it is smaller than "
            f"{ROWS:,} rows, or raise the limit.",
        )


def alone(questions: Iterable[Single], facts: Facts) -> float:
    """Seconds that one person's rows take at most, whatever stands in them."""
    return _Work(facts, lambda relation: shape(relation, facts).rows, MAX_CELL_LENGTH).of(questions) / 1e9


def whole(questions: Iterable[Single], facts: Facts) -> float:
    """Seconds that all rows take, as many as are declared, with texts of usual length: an estimate, no bound."""
    return _Work(facts, lambda relation: _size(relation, facts), USUAL).of(questions) / 1e9


def _shown(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


def _size(relation: Relation, facts: Facts) -> int:
    """How many rows a relation is taken to have; an estimate from what is declared."""
    if isinstance(relation, Table):
        table = facts.table_of(relation.name)
        declared = facts.size if table.schema.table == facts.schema.table else None
        size = table.rows if table.public else declared
        return ROWS if size is None else size
    sizes = [_size(source, facts) for source in relation.sources()]
    return sum(sizes) if isinstance(relation, Union) else max(sizes)


class _Work:
    """Nanoseconds that some rows cause: `rows` says how many of each relation, `longest` where their texts end."""

    def __init__(self, facts: Facts, rows: Callable[[Relation], int], longest: int) -> None:
        self._facts = facts
        self._rows = rows
        self._longest = longest

    def of(self, questions: Iterable[Single]) -> float:
        """All that is asked at once."""
        return sum(map(self._question, questions))

    def _question(self, question: Single) -> float:
        asked = question.counts if isinstance(question, (Choose, Above)) else question
        keys = asked.by if isinstance(asked, OpenSums) else ()
        return self._relation(asked.over) + self._functions(asked.parts(), asked.over, keys)

    def _functions(self, fns: Iterable[rowfn.RowFn], over: Relation, keys: Iterable[rowfn.RowFn] = ()) -> float:
        """Row functions over a relation's rows; of keys, their values are told apart besides."""
        schema, read = shape(over, self._facts).schema, set[str]()
        total = sum(self._row(fn, schema, read)[0] for fn in fns)
        total += sum(GROUP + HELD * self._row(fn, schema, read)[1] for fn in keys)
        return (total + sum(READ * self._text(schema, name) for name in read)) * self._rows(over)

    def _relation(self, relation: Relation) -> float:
        total = sum(map(self._relation, relation.sources()))
        match relation:
            case Where() | Select():
                return total + self._functions(relation.parts(), relation.source)
            case PerPerson():
                return (
                    total
                    + self._functions(relation.parts(), relation.source)
                    + self._apart(relation.source, relation.keys)
                    + self._functions((), relation.source, relation.parts())
                )
            case Distinct():
                return total + self._apart(relation.source, self._names(relation.source))
            case Join():
                total += self._apart(relation.left, [ours for ours, _ in relation.on])
                total += self._apart(relation.right, [theirs for _, theirs in relation.on])
                return total + self._rows(relation) * NODE * len(self._names(relation))
            case Union():
                return total + self._rows(relation) * NODE * len(self._names(relation))
        return total

    def _names(self, relation: Relation) -> list[str]:
        return list(shape(relation, self._facts).schema.names)

    def _apart(self, relation: Relation, names: Iterable[str]) -> float:
        """Rows told apart by some of their columns: by hashing or sorting them."""
        schema = shape(relation, self._facts).schema
        return self._rows(relation) * (GROUP + sum(GROUP + HELD * self._text(schema, name) for name in names))

    def _text(self, schema: Schema, name: str) -> int:
        column = schema.find(name)
        return min(column.longest, self._longest) if isinstance(column, Text) else 0

    def _row(self, fn: rowfn.RowFn, schema: Schema, read: set[str]) -> tuple[float, int]:
        """Nanoseconds of a row function on one row, and the characters of the text it gives (0: it gives none)."""
        if isinstance(fn, rowfn.Col):
            length = self._text(schema, fn.name)
            read |= {fn.name} if length else set()
            return NODE, length
        if isinstance(fn, rowfn.Lit):
            return 0.0, len(fn.value) if isinstance(fn.value, str) else 0
        parts = [self._row(part, schema, read) for part in fn.parts()]
        below, lengths = sum(part for part, _ in parts), [length for _, length in parts]
        if isinstance(fn, TEXTS):
            kind = fn.kind(schema)
            gives = min(kind.longest, sum(lengths)) if isinstance(kind, Words) else 0
            return below + CALL + _of_text(fn, sum(lengths)), gives
        if isinstance(fn, VECTORS):
            return below + _of_vector(fn, schema), 0
        own = SLOW if isinstance(fn, SLOWER) else NODE
        if isinstance(fn, rowfn.IsIn):
            own += ITEM * len(fn.values)
        gives = max(lengths, default=0) if isinstance(fn, (rowfn.First, rowfn.NullIf)) else 0
        met = (
            min(lengths) if isinstance(fn, rowfn.Compare) else sum(lengths)
        )  # texts of different lengths are not equal
        return below + own + MET * met, gives


def _of_text(fn: rowfn.RowFn, length: int) -> float:
    """A function of texts of so many characters together."""
    match fn:
        case rowfn.Like():
            segments = fn.segments()
            signs, free = sum(map(len, segments)), sum(segment.count(ANY) for segment in segments)
            wild = WILD_SIGN * (signs - free) + ANY_SIGN * free
            return length * (FOUND + (wild if free else FOUND_SIGN * max(map(len, segments))))
        case rowfn.IndexOf():
            return length * (FOUND + FOUND_SIGN * len(fn.needle))
        case rowfn.Lowered() | rowfn.Uppered():
            return length * CASED
        case rowfn.Trimmed():
            return length * (TRIMMED + TRIMMED_SIGN * len(fn.characters))
        case rowfn.Substring():
            return length * CUT
        case rowfn.Concat():
            return length * JOINED
    return length * READ


def _of_vector(fn: rowfn.RowFn, schema: Schema) -> float:
    """A function of a vector, or one that gives a vector."""
    match fn:
        case rowfn.Nearest():
            return NODE + ENTRY * sum(map(len, fn.centres))
        case rowfn.Dot():
            return NODE + ENTRY * len(fn.weights)
    kind = fn.kind(schema)
    width = kind.width if isinstance(kind, Grid) else 1
    return NODE + width * (ENTRY if isinstance(fn, rowfn.Outer) else PLACE)


KNOWN: Final = frozenset(
    {*TEXTS, *VECTORS, *SLOWER, rowfn.Col, rowfn.Compare, rowfn.First, rowfn.IsIn, rowfn.Lit, rowfn.NullIf}
)
PLAIN: Final = frozenset(rowfn.ROW_FUNCTIONS) - KNOWN  # of a few numbers each: NODE
