"""A report: titled tables at one debit, synthetic rows beside them where they are asked for, and a page to read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

import pyarrow as pa

from sulq.answers.answer import Answers
from sulq.answers.budget import RunForecast
from sulq.answers.call import timed
from sulq.answers.oracle import ChoosingOracle, ForecastingOracle, Oracle, Progress
from sulq.display.columns import ShownColumn, text_rows
from sulq.display.labels import MISSING
from sulq.display.progress import shows_progress
from sulq.errors import BudgetExceeded
from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonKeys, Loss, Queries
from sulq.language.shape import DerivedTable
from sulq.release.aim import aim
from sulq.release.base import Paid, Release, Written, unreadable
from sulq.release.mwem import mwem
from sulq.release.page import Chart, picture
from sulq.release.publish import Transcript, chart_of, columns_of, plain, weighed_publication
from sulq.release.report.page import MAX_ROWS_SHOWN, ReportSection, report_page
from sulq.release.report.spec import USUAL_LEVEL, ReportSpec, ReportTable, SyntheticPart
from sulq.release.report.statement import Said, method, noise_told, promise
from sulq.release.synthetic.data import SyntheticData
from sulq.sql.answer import SqlAnswer

METHODS: Final[Mapping[str, Callable[..., SyntheticData]]] = {"aim": aim, "mwem": mwem}
MAX_SYNTHETIC_CHARTS: Final = 6
SHOWN_SYNTHETIC_ROWS: Final = 5
SYNTHETIC: Final = "synthetic-"  # begins the names of its tables


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReport(Release):
    """Tables with intervals, charts, and what they protect, to be read by anybody; `report[i]` is an answer.

    Privacy: one debit for all tables, and those of the synthetic rows, which `paid` of each part says; the page is
    made of these answers and of public facts (post-processing).
    """

    kind: ClassVar[str] = "report"
    spec: ReportSpec
    answers: Transcript
    synthetic: SyntheticData | None = None
    made: str  # the day, as YYYY-MM-DD
    budget: tuple[str, ...] = ()  # what readers are told of the whole budget, if its owner wants that
    notes: tuple[str, ...] = ()  # what was declared after looking at the rows, and which rows it is of, if not of all

    def __len__(self) -> int:
        return len(self.spec.tables)

    def __getitem__(self, index: int) -> SqlAnswer:
        """The answer to a table's query by its place, with its error bars."""
        found = self.answers[index]
        assert isinstance(found, SqlAnswer)  # noqa: S101 - for the type checker: all of them are SQL
        return found

    def title(self) -> str:
        """One line for people."""
        return self.spec.title

    def tables(self) -> dict[str, pa.Table]:
        """Each table with the ends of its intervals, and the synthetic rows."""
        made = {
            name: pa.table(plain(_columns(self[i], self.spec.level))) for i, name in enumerate(file_names(self.spec))
        }
        held = {} if self.synthetic is None else self.synthetic.tables()
        return made | {f"{SYNTHETIC}{name}": table for name, table in held.items()}

    def facts(self) -> dict[str, object]:
        """The specification, the answers, and what is said of the synthetic rows."""
        told: dict[str, object] = {"spec": self.spec.to_json(), "made": self.made, "budget": list(self.budget)}
        told["notes"] = list(self.notes)
        told |= {"transcript": {"paid": self.answers.paid.to_json(), "facts": self.answers.facts()}}
        if self.synthetic is not None:
            told["synthetic"] = {"paid": self.synthetic.paid.to_json(), "facts": self.synthetic.facts()}
        return told

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The report that was saved; its tables but the synthetic ones are made from its answers again."""
        spec, said = ReportSpec.read(facts["spec"]), facts["transcript"]
        answers = Transcript.of(Paid.from_json(said["paid"]), said["facts"], {})
        if list(answers.questions) != [one.sql for one in spec.tables]:
            raise unreadable()
        rows = {name.removeprefix(SYNTHETIC): table for name, table in tables.items() if name.startswith(SYNTHETIC)}
        held = facts.get("synthetic")
        synthetic = None if held is None else SyntheticData.of(Paid.from_json(held["paid"]), held["facts"], rows)
        day = datetime.date.fromisoformat(facts["made"]).isoformat()
        budget = tuple(str(text) for text in facts["budget"])
        notes = tuple(str(text) for text in facts.get("notes", ()))  # a report of version 0.1.0 has none
        return cls(paid=paid, spec=spec, answers=answers, synthetic=synthetic, made=day, budget=budget, notes=notes)

    def charts(self) -> list[Chart]:
        """A picture of each table that has one."""
        found = [_chart(one, self[i]) for i, one in enumerate(self.spec.tables)]
        return [chart for chart in found if chart is not None] + self._synthetic_charts()

    def page(self, charts: Sequence[Chart], written: Written) -> str:
        """The report as HTML, to read or to print."""
        spec, names = self.spec, file_names(self.spec)
        sections = [_section(one, self[i], spec.level, f"{names[i]}.{written}") for i, one in enumerate(spec.tables)]
        if self.synthetic is not None:
            sections.append(self._synthetic_section(self.synthetic, f"{SYNTHETIC}rows.{written}"))
        by = " · ".join(text for text in (spec.author, self.made) if text)
        notes = [*self.notes, *method(self._parts(), self.answers.database, spec.level)]
        return report_page(spec.title, [by, spec.about], sections, self.promise(), notes)

    def promise(self) -> list[Said]:
        """What the report protects, in a reader's words."""
        return promise(self._parts(), self.answers.database, self.budget)

    def save(self, path: str | Path, written: Written = "csv") -> None:
        """Write it into a folder: a page, a CSV file beside it for each table, and `release.json`."""
        Release.save(self, path, written)

    def _parts(self) -> list[Paid]:
        return [self.answers.paid, *(() if self.synthetic is None else (self.synthetic.paid,))]

    def _synthetic_charts(self) -> list[Chart]:
        return [] if self.synthetic is None else self.synthetic.charts()[:MAX_SYNTHETIC_CHARTS]

    def _synthetic_section(self, made: SyntheticData, file: str) -> ReportSection:
        rows = made.rows.slice(0, SHOWN_SYNTHETIC_ROWS)
        shown = text_rows([ShownColumn(name, rows[name].to_pylist()) for name in made.names])
        about = self.spec.synthetic.about if self.spec.synthetic else ""
        told = "These rows are nobody's: they were drawn from a model of noisy counts. The first of them:"
        return ReportSection(
            made.title(), "\n\n".join(text for text in (about, told) if text), made.names, tuple(shown),
            tuple(False for _ in made.names), len(made) - len(shown),
            "".join(f"<figure>{picture(chart)}</figure>" for chart in self._synthetic_charts()),
            (f"{made.paid}.", *made.notes), file=file,
        )  # fmt: skip

    def __repr__(self) -> str:
        lines = [f"{number}. {one.title}" for number, one in enumerate(self.spec.tables, 1)]
        return "\n".join([f"{self.title()}; {self.paid}", *lines])


@shows_progress
@timed
def report(
    db: Oracle,
    spec: ReportSpec | Mapping[str, object] | str | Path,
    *,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> PublishedReport:
    """Ask all of a report's tables at one debit, and make what can be published.

    Args:
        db: the database, or a far curator.
        spec: a TOML file, or a mapping of its form (docs/guide/release/report.md).
        spend: of all tables together, in place of the specification's.
        progress: called with how many parts are done, and how many there are.
        timeout: seconds to wait; what was charged by then stays charged, and is said.

    Raises:
        QuestionError: `bad-report`, or what is wrong with a query; nothing is spent.
        BudgetExceeded: the tables and the synthetic rows together do not fit what is left; nothing is spent.
    """
    read = ReportSpec.read(spec)
    paid = read.spend if spend is None else spend
    read = replace(read, spend=paid)
    facts = db.facts
    _check_left(db, [paid, None if read.synthetic is None else read.synthetic.spend])
    steps, tell = 1 + (read.synthetic is not None), progress or (lambda _done, _planned: None)
    tell(0, steps)
    weights = [one.weight for one in read.tables]
    answers = weighed_publication(
        db, [one.sql for one in read.tables], weights=None if len(set(weights)) == 1 else weights, spend=paid
    )
    tell(1, steps)
    synthetic = None if read.synthetic is None else _synthetic(db, read.synthetic)
    tell(steps, steps)
    budget = _budget(facts, db.facts) if read.show_budget else ()
    made = datetime.datetime.now(datetime.UTC).date().isoformat()
    return PublishedReport(
        paid=answers.paid,
        spec=read,
        answers=answers,
        synthetic=synthetic,
        made=made,
        budget=budget,
        notes=_notes(facts),
    )


def file_names(spec: ReportSpec) -> list[str]:
    """The name of each table's file: its number and the plain letters of its title."""
    slugs = (re.sub(r"[^a-z0-9]+", "-", one.title.lower()).strip("-")[:60] for one in spec.tables)
    return [f"{number:02}-{slug}".rstrip("-") for number, slug in enumerate(slugs, 1)]


def _check_left(db: Oracle, spends: Sequence[Loss | None]) -> None:
    """Refuse a report of which only a part would fit the budget, before any of it is paid."""
    priced = [spend for spend in spends if spend is not None and not isinstance(spend, (Queries, EpsilonKeys))]
    if len(priced) < 2 or not isinstance(db, ForecastingOracle):
        return
    facts = db.facts
    # Named asks take prices, and say what would be left in words; a bare oracle takes losses.
    told: object = db.afford(
        cast("Any", priced) if isinstance(db, ChoosingOracle) else list(map(facts.event_of, priced))
    )
    if None in (told.left if isinstance(told, RunForecast) else cast("tuple[object, ...]", told)):
        both = " and ".join(map(str, priced))
        raise BudgetExceeded("budget-exceeded", f"The report would cost {both}; {facts.remaining} is left.")


def _synthetic(db: Oracle, part: SyntheticPart) -> SyntheticData:
    told = {name: value for name in ("rows", "bins") if (value := getattr(part, name)) is not None}
    return METHODS[part.method](db, list(part.columns), spend=part.spend, **told)


def _notes(facts: Facts) -> tuple[str, ...]:
    """What was declared after looking at exact counts (SR28), and of which rows the report is, if not of a database."""
    found = [f"Some of what is declared was {facts.after_looking}."] if facts.looked else []
    found += [
        f"The numbers are of the rows of the derived table {table.schema.table} as they were chosen for this "
        "report: it may hold a part of the people, or of their rows, and not all of the data."
        for table in facts.tables
        if isinstance(table, DerivedTable)
    ]
    return tuple(found)


def _budget(before: Facts, after: Facts) -> tuple[str, ...]:
    """What is said of the whole budget, where its owner wants readers to know."""
    return (
        (
            f"All answers that are ever given from these data together are held to {before.budget}. "
            f"After this report {after.remaining} of it is left."
        ),
    )


def _columns(found: SqlAnswer, level: float) -> dict[str, list[object]]:
    return columns_of(found) if level == USUAL_LEVEL else found.to_dict(level)


def _chart(table: ReportTable, found: SqlAnswer) -> Chart | None:
    return None if table.chart == "none" else chart_of(table.title, columns_of(found))


def _section(table: ReportTable, found: SqlAnswer, level: float, file: str) -> ReportSection:
    columns, chart = found.shown(level, MISSING), _chart(table, found)
    drawn = "" if chart is None else f"<figure>{picture(chart, bars=table.chart == 'bars')}</figure>"
    noise = noise_told(found.answers if isinstance(found.answers, Answers) else None)
    return ReportSection(
        table.title, table.about, found.columns, tuple(text_rows(columns, MAX_ROWS_SHOWN)),
        tuple(column.low is not None for column in columns), max(found.table.size - MAX_ROWS_SHOWN, 0), drawn,
        (f"Intervals at {level:.0%}. {noise}", *found.table.notes), " ".join(table.sql.split()), file,
    )  # fmt: skip
