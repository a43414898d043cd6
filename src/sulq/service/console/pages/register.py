"""Registering a dataset, step by step: files, columns, whom to protect, budget, how the rows fit, a last look.

What its owner said so far is read from the form's fields and checked step by step. Counts over the rows are shown once,
to the owner who asks for them, and no step carries them (SR28).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from starlette.responses import Response

from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.domain import Column, Schema
from sulq.language.facts import MUCH, Facts
from sulq.language.privacy import DELTA_SHARES, Budget, Epsilon, EpsilonDelta, Loss, Rho, Unit, delta_share_of
from sulq.language.rows_choice import AUTO, AutoUnit, DeclaredUnit
from sulq.service.console.api import Refusal, Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.pages.table_draft import (
    KINDS,
    ColumnDraft,
    TableDraft,
    looked_tables,
    message,
    number,
    whole,
)
from sulq.service.console.views import words
from sulq.service.console.visit import Visit, place

STEPS: Final = ("file", "columns", "unit", "budget", "check", "review")
STEP_FIELDS: Final = {  # of the steps but `columns`: the fields of their forms, and what these say at first
    "file": {"file": "", "several": "", "name": ""},
    "unit": {"whose": "column", "person": "", "rows": "1", "neighbors": "add_remove", "fold": ""},
    "budget": {"way": "epsilon", "epsilon": "1", "delta": "1e-6", "rho": "0.1"}
    | {"basic_share": "", "key_share": "", "size": "", "synthetic": "", "anchor": ""},
}
VERBATIM: Final = ("file", "several", "person")  # names of files and of columns keep their blanks
MAX_COLUMNS: Final = 3000
MAX_TABLES: Final = 200
MAX_USUAL_EPSILON: Final = 5  # one past this is worth a second thought
TITLES = {
    "file": "The file",
    "columns": "Its columns",
    "unit": "Whom to protect",
    "budget": "The budget",
    "check": "How the rows fit",
    "review": "A last look",
}


@dataclass(slots=True)
class RegistrationDraft:
    """All that was said so far."""

    columns: list[ColumnDraft]
    file: str
    several: str  # a folder, a pattern, or one of these or a file on each line; "" where the table is one file
    name: str
    whose: str  # "row" or "column"
    person: str
    rows: str
    neighbors: str
    fold: str  # "case", "spelling" or "", where ids are exact
    way: str
    epsilon: str
    delta: str
    basic_share: str  # of delta; "" where the owner sets none
    key_share: str  # likewise
    rho: str
    size: str
    synthetic: str  # "yes" or ""
    anchor: str  # a file's name; "" where the ledger has none
    files: tuple[str, ...] = ()  # those that were chosen: more than one are tables of their own
    tables: list[TableDraft] = field(default_factory=list)  # none but of several
    problems: dict[str, str] = field(init=False, default_factory=dict)

    @classmethod
    def of(cls, fields: Fields) -> RegistrationDraft:
        """From a form of any step."""
        columns = [ColumnDraft.of(fields, i) for i in range(_count(fields, "columns", MAX_COLUMNS))]
        tables = [TableDraft.of(fields, j) for j in range(_count(fields, "tables", MAX_TABLES))]
        usual = {name: text for step in STEP_FIELDS.values() for name, text in step.items()}
        said = {name: fields.text(name) or text for name, text in usual.items()}
        said |= {name: fields.get(name, "") for name in VERBATIM}
        files = tuple(dict.fromkeys(file for file in fields.all("file") if file))
        said["file"] = files[0] if files else ""
        return cls(columns, **said, files=files, tables=tables)

    def take(self, tables: list[TableDraft], columns: list[ColumnDraft]) -> None:
        """Take what files were found to hold; one table has no words of its own."""
        self.columns, self.tables = columns, tables if len(tables) > 1 else []

    @property
    def data(self) -> str | list[str]:
        """The file, or several as one table, as the API takes them."""
        lines = [line for line in self.several.splitlines() if line.strip()]
        return lines if len(lines) > 1 else lines[0] if lines else self.file

    def hidden(self, step: str) -> list[tuple[str, str]]:
        """What the other steps said, for the form of this one to carry."""
        said = {known: [(name, getattr(self, name)) for name in names] for known, names in STEP_FIELDS.items()}
        said["columns"] = [("columns", str(len(self.columns)))] if self.columns else []
        said["columns"] += [pair for i, one in enumerate(self.columns) for pair in one.hidden(i, step)]
        said["file"] += [("file", other) for other in self.files[1:]]
        if self.tables:
            said["columns"].append(("tables", str(len(self.tables))))
        if self.tables and step != "columns":
            said["columns"] += [pair for j, table in enumerate(self.tables) for pair in table.hidden(j)]
        carried = [known for known in STEPS if known in said and (known != step or known == "columns")]
        return [pair for known in carried for pair in said[known]]

    def reach(self, step: str) -> str:
        """The step to show: the one asked for, or the first before it that is not right yet."""
        checks: dict[str, Callable[[], object]] = {"columns": self.declared, "unit": self.unit, "budget": self.budget}
        for known in STEPS[: STEPS.index(step)]:
            if known in checks and checks[known]() is None:
                return known
        return step

    def declared(self) -> dict[str, dict[str, Column]] | None:
        """By tables every column that is not left out, if all are right; a table without one is left out too."""
        found: dict[str, dict[str, Column]] = {}
        for one in self.columns:
            column = one.column()
            if column is not None:
                found.setdefault(self.table_of(one), {})[one.name] = column
        if len({table.name for table in self.tables}) < len(self.tables):
            self.problems["columns"] = "Each table has a name of its own."
            return None
        if any(one.problem for one in self.columns):
            self.problems["columns"] = "Some columns are not right yet; each says what is missing."
            return None
        if not found:
            self.problems["columns"] = "Declare at least one column: one that is left out cannot be asked about."
            return None
        return found

    def table_of(self, one: ColumnDraft) -> str:
        """The name of a column's table."""
        return self.tables[one.table].name if one.table < len(self.tables) else self.name or "data"

    def unit(self) -> Unit | None:
        """Whom an answer hides."""
        try:
            if self.whose == "row":
                return Unit(neighbors=self.neighbors)  # type: ignore[arg-type]  # refused if it is none
            if self.person not in [one.name for one in self.columns]:
                raise ValueError("Choose the column that says whose row it is.")
            rows: int | Literal["auto"] = "auto" if self.rows == AUTO else whole(self.rows, "The number of rows")
            return DeclaredUnit(self.person, rows, self.neighbors, self.fold or None)  # type: ignore[arg-type]  # likewise
        except (SulqError, ValueError) as error:
            self.problems["unit"] = message(error)
            return None

    def budget(self) -> Budget | None:
        """What may be lost in total, how its delta is divided, and the declared size."""
        try:
            self.count()
            self.shares()
            if self.way == "rho":
                return Rho(number(self.rho, "rho"))
            epsilon = number(self.epsilon, "epsilon")
            found = EpsilonDelta(epsilon, number(self.delta, "delta")) if self.way == "both" else Epsilon(epsilon)
            found.exact  # noqa: B018 - refuses what is no budget
        except (SulqError, ValueError) as error:
            self.problems["budget"] = message(error)
            return None
        return found

    def count(self) -> int | None:
        """The declared number of rows, if it may be known."""
        return whole(self.size, "The number of rows") if self.size and not self.tables else None

    def shares(self) -> dict[str, float]:
        """The parts of delta that the owner sets, if there is a delta, by their names."""
        said = {name: getattr(self, name) for name in DELTA_SHARES if self.way == "both"}
        found = {name: number(text, name) for name, text in said.items() if text}
        for name, part in found.items():
            delta_share_of(name, part)
        return found

    def warnings(self) -> list[str]:
        """What a careful owner should read before going on (T93)."""
        columns, unit, budget = self.declared(), self.unit(), self.budget()
        if columns is None or unit is None or budget is None:
            return []
        public = {table.name for table in self.tables if table.public}
        private = {name: told for name, told in columns.items() if name not in public}
        if not private:
            return ["All of these tables are public: there is nobody to protect."]
        schema = Schema(*next((name, tuple(told.items())) for name, told in private.items()))
        facts = Facts(schema, unit, budget, cast("Loss", budget), cast("Loss", budget), self.count())
        found = [f"{caution[0].upper()}{caution[1:]}." for caution in facts.cautions]
        if isinstance(budget, (Epsilon, EpsilonDelta)) and MAX_USUAL_EPSILON < float(budget.amount) <= MUCH:
            means = words.odds(budget, unit, "all answers together")
            found.append(f"Epsilon {words.small(float(budget.amount))} is a lot. {means}")
        if isinstance(budget, EpsilonDelta) and self.count() is None:
            found.append(
                "Keep delta well below 1 divided by the number of people; declare the size to have it checked."
            )
        if isinstance(unit, AutoUnit):
            part = f"A part of {float(unit.share):.3g} of the budget buys a noisy histogram of rows per person"
            found.append(f"{part}; the number of rows is chosen from it, of at most {unit.rows:,}, and fixed for ever.")
        if unit.column is None:
            found.append("Each row is taken for a person of its own. If anyone may have two rows, they are not hidden.")
        if unit.column is not None and any(unit.column in told for told in private.values()):
            found.append(f"The person's own column {unit.column!r} can be asked about; leave it out unless it must be.")
        return found

    def body(self) -> Tree:
        """The registration as the API takes it."""
        unit, budget = self.unit(), self.budget()
        body: dict[str, object] = self._parts() | {
            "name": self.name,
            "unit": wire.to_json(unit),
            "budget": wire.to_json(budget),
            "synthetic": self.synthetic == "yes",
        }
        if self.count() is not None:
            body["size"] = self.count()
        if self.anchor:
            body["anchor"] = self.anchor
        return body | self.shares()

    def _parts(self) -> dict[str, object]:
        """The table, or those of several of which a column is declared."""
        told = {
            table: {name: wire.to_json(column) for name, column in columns.items()}
            for table, columns in (self.declared() or {}).items()
        }
        if not self.tables:
            return {"file": self.data, "columns": next(iter(told.values()), {})}
        return {"tables": {table.name: table.body(told[table.name]) for table in self.tables if table.name in told}}


def _count(fields: Fields, name: str, most: int) -> int:
    text = fields.text(name)
    return min(int(text), most) if text.isdecimal() and len(text) < 9 else 0


async def begin(visit: Visit) -> Response:
    """The first step: which file."""
    return await _step(visit, RegistrationDraft.of(Fields([])), "file")


async def step(visit: Visit) -> Response:
    """One of the steps; what is not right yet is shown again, with what is missing."""
    draft = RegistrationDraft.of(await visit.form())
    wanted = str(visit.request.path_params["step"])
    if wanted not in STEPS:
        raise Refusal(404, "not-found", "There is no such step.", "Start the registration again.")
    if wanted == "file":
        return await _step(visit, draft, "file")
    if not draft.columns or visit.request.query_params.get("look"):
        try:
            several = draft.files if len(draft.files) > 1 and not draft.several.strip() else (draft.data,)
            looks = [(file, await visit.api.post(at("look"), {"file": file})) for file in several]
            draft.take(*looked_tables([(file if isinstance(file, str) else "", look) for file, look in looks]))
        except Refusal as refusal:
            return await _step(visit, draft, "file", refusal=refusal)
    reached = draft.reach(wanted)
    if reached == "check" and visit.request.query_params.get("count"):
        try:
            report = await visit.api.post(at("check"), draft.body())
        except Refusal as refusal:
            return await _step(visit, draft, "check", refusal=refusal)
        return await _step(visit, draft, "check", report=report)
    return await _step(visit, draft, reached)


async def register(visit: Visit) -> Response:
    """Write it down; the first ask waits until the rows are prepared."""
    draft = RegistrationDraft.of(await visit.form())
    step = draft.reach("review")
    if step != "review":
        return await _step(visit, draft, step)
    try:
        found = await visit.api.post(at("datasets"), draft.body())
    except Refusal as refusal:
        return await _step(visit, draft, "review", refusal=refusal)
    choice = wire.from_json(found.get("choice"))
    return visit.page("registered.html", name=draft.name, place=place(draft.name), choice=choice)


async def _step(
    visit: Visit,
    draft: RegistrationDraft,
    name: str,
    *,
    refusal: Refusal | None = None,
    report: Tree | None = None,
) -> Response:
    files = (await visit.api.post(at("look"), {}))["files"] if name == "file" else []
    problem = draft.problems.get(name, "")
    reviewed: dict[str, Any] = {"declared": {}, "unit": None, "budget": None, "shares": {}, "warnings": []}
    if name == "review":
        reviewed = {
            "declared": draft.declared() or {},
            "unit": draft.unit(),
            "budget": draft.budget(),
            "shares": draft.shares(),
            "warnings": draft.warnings(),
        }
        reviewed["promise"] = words.guarantee(reviewed["unit"], reviewed["budget"])
    return visit.page(
        f"register_{name}.html",
        400 if problem else 200,
        draft=draft,
        step=name,
        steps=[(known, TITLES[known]) for known in STEPS],
        number=STEPS.index(name) + 1,
        hidden=draft.hidden(name),
        files=files,
        kinds=KINDS,
        report=report,
        problem=problem,
        refusal=refusal,
        **reviewed,
    )
