"""`bounds="auto"` for a query: which of its values are searched for, and the query over the clipped values.

The sums, means and spreads of a number are of clipped values; counts, extremes, quantiles, correlations and what is
DISTINCT are not touched. Post-processing of one search that is paid for at a debit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sulq.answers import wire
from sulq.answers.auto_bounds import Clip, SearchedValue, searched
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.kinds import Scalar
from sulq.language.shape import shape
from sulq.sql.explain import value_name
from sulq.sql.parse.syntax import Node, Place, walk
from sulq.sql.released.program import (
    MOMENTS,
    GroupStatistics,
    ProgramSource,
    Regroup,
    StackedPrograms,
    Stat,
    StatAt,
    SubqueryValue,
    TableProgram,
    with_sources,
)
from sulq.sql.released.render import sources_of
from sulq.sql.rows.values import both


@dataclass(frozen=True, slots=True, eq=False)
class QuerySearch:
    """The values of a query whose bounds are searched for, each once, by a text that tells them apart."""

    program: TableProgram
    values: Mapping[str, SearchedValue]

    @classmethod
    def of(cls, program: TableProgram, facts: Facts) -> QuerySearch:
        """What is searched for a query.

        Raises:
            QuestionError: `bad-question`: a sum or mean of DISTINCT values, for which there is no search.
        """
        found: dict[str, SearchedValue] = {}
        for groups in sources_of(program):
            schema = shape(groups.over, facts).schema
            for stat in groups.stats:
                if stat.name == "count" or stat.name not in MOMENTS:
                    continue
                if stat.distinct:
                    why = 'bounds="auto" does not search for DISTINCT values.'
                    raise QuestionError("bad-question", why, "Leave DISTINCT or bounds out.")
                if isinstance(stat.args[0].kind(schema), Scalar):
                    value = searched(
                        stat.args[0], schema, where=both(groups.where, stat.where), by=groups.keys, over=groups.over,
                        centred=stat.name != "sum",
                    )  # fmt: skip
                    if value is not None:
                        found.setdefault(_text(groups, stat), value)
        return cls(program, found)

    @property
    def names(self) -> list[str]:
        """What the values are called in a note; those of one name by the columns of the answer that read them."""
        names, read = {text: value_name(value.fn) for text, value in self.values.items()}, _read(self.program)
        columns = {
            text: [column for (column, _), texts in zip(self.program.columns, read, strict=True) if text in texts]
            for text, name in names.items()
            if [*names.values()].count(name) > 1
        }
        told = [f"{name} of {', '.join(columns[text])}" if columns.get(text) else name for text, name in names.items()]
        return [
            f"{name} ({told[: i + 1].count(name)})" if told.count(name) > 1 else name for i, name in enumerate(told)
        ]

    def clipped(self, clips: Mapping[str, Clip]) -> TableProgram:
        """The program over clipped values; a count of the same value stays beside its sum, and is the same number."""

        def one(groups: GroupStatistics, stat: Stat) -> Stat:
            name = _text(groups, stat) if stat.name in MOMENTS and not stat.distinct else ""
            return replace(stat, args=(self.values[name].clipped(clips[name]),)) if name in clips else stat

        def change(groups: GroupStatistics) -> GroupStatistics:
            return replace(groups, stats=tuple(one(groups, stat) for stat in groups.stats))

        return with_sources(self.program, change)

    def narrowest(self) -> TableProgram:
        """The program with the least noise that any clip could give it."""
        return self.clipped({name: value.narrowest for name, value in self.values.items()})


def _read(program: TableProgram) -> list[set[str]]:
    """The texts of the statistics that each column of a program rests on."""
    source = program.source
    inner = [_read(one) for one in _below(source)]

    def of(node: Node) -> set[str]:
        found: set[str] = set()
        for part in walk(node):
            match part:
                case StatAt(index=i) if isinstance(source, GroupStatistics):
                    found.add(_text(source, source.stats[i]))
                case StatAt(index=i) if isinstance(source, Regroup):
                    found |= of(source.stats[i])
                case Place(index=i):
                    found.update(*(columns[i] for columns in inner))
                case SubqueryValue(program=other):
                    found.update(*_read(other))
        return found

    return [of(node) for _, node in program.columns]


def _below(source: ProgramSource) -> tuple[TableProgram, ...]:
    match source:
        case StackedPrograms(programs=programs):
            return programs
        case Regroup(source=program):
            return (program,)
        case TableProgram():
            return (source,)
    return ()


def _text(groups: GroupStatistics, stat: Stat) -> str:
    return wire.encode((groups.over, groups.where, stat.where, stat.args))
