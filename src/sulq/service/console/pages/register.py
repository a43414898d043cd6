"""Registering a dataset, step by step: file, columns, whom to protect, budget, a last look.

What its owner said so far is read from the form's fields and checked step by step. Kinds are suggested
from the types of the file's schema and from nothing else; bounds are asked for, since a bound read off
the data would give its extremes away (T21).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar, cast

from starlette.responses import Response

from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.facts import MUCH, Facts
from sulq.language.privacy import DELTA_SHARES, Budget, Epsilon, EpsilonDelta, Loss, Rho, Unit, delta_share_of
from sulq.language.rows_choice import AUTO, AutoUnit, DeclaredUnit
from sulq.service.console.api import Refusal, Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.views import words
from sulq.service.console.visit import Visit, place

T = TypeVar("T")

STEPS: Final = ("file", "columns", "unit", "budget", "review")
STEP_FIELDS: Final = {  # of the steps but `columns`: the fields of their forms, and what these say at first
    "file": {"file": "", "several": "", "name": ""},
    "unit": {"whose": "column", "person": "", "rows": "1", "neighbors": "add_remove", "fold": ""},
    "budget": {"way": "epsilon", "epsilon": "1", "delta": "1e-6", "rho": "0.1"}
    | {"basic_share": "", "key_share": "", "size": "", "synthetic": "", "anchor": ""},
}
VERBATIM: Final = ("file", "several", "person")  # names of files and of columns keep their blanks
MAX_COLUMNS: Final = 3000
KINDS: Final = {
    "skip": "leave out: nobody can ask about it",
    "int": "whole number",
    "real": "number",
    "bool": "true or false",
    "category": "one of a list",
    "date": "date",
    "timestamp": "date and time",
    "text": "text",
}
COUNTS_AS: Final = "What a missing cell counts as"
MAX_USUAL_EPSILON: Final = 5  # one past this is worth a second thought
_TYPES: Final = (
    (("bool",), "bool"),
    (("timestamp", "datetime"), "timestamp"),
    (("date",), "date"),
    (("uint", "int", "long", "short"), "int"),
    (("float", "double", "decimal", "real", "numeric"), "real"),
    (("str", "varchar", "text", "utf8", "char", "enum", "dictionary"), "category"),
)
_LETTERS: Final = {"t": "type", "a": "low", "b": "high", "d": "default", "l": "longest"}  # of a column's plain fields
TITLES = {
    "file": "The file",
    "columns": "Its columns",
    "unit": "Whom to protect",
    "budget": "The budget",
    "review": "A last look",
}


def suggested(kind: str) -> str:
    """The kind a column's type suggests."""
    low = kind.lower()
    return next((found for starts, found in _TYPES if any(start in low for start in starts)), "skip")


@dataclass(slots=True)
class ColumnDraft:
    """One column of the file as the form has it."""

    name: str
    type: str
    kind: str
    low: str = ""
    high: str = ""
    values: str = ""
    never: bool = False  # missing
    default: str = ""
    problem: str = ""
    longest: str = ""  # of a text

    @classmethod
    def of(cls, fields: Fields, i: int) -> ColumnDraft:
        """The i-th column of a form."""
        texts = {name: fields.text(f"{letter}{i}") for letter, name in _LETTERS.items()}
        values = fields.get(f"v{i}", "").replace("\r\n", "\n")
        kind, never = fields.text(f"k{i}") or "skip", fields.text(f"m{i}") == "never"
        return cls(fields.get(f"n{i}", ""), kind=kind, values=values, never=never, **texts)

    def hidden(self, i: int, step: str) -> list[tuple[str, str]]:
        """What was said of the i-th column, for the form of a step to carry."""
        found = [("n", self.name), ("t", self.type)]
        if step != "columns":
            found += [("k", self.kind), ("a", self.low), ("b", self.high), ("v", self.values)]
            found += [("m", "never" if self.never else ""), ("d", self.default)]
            found += [("l", self.longest)] if self.longest else []
        return [(f"{letter}{i}", value) for letter, value in found]

    def column(self) -> Column | None:
        """The declaration, or None where it is left out or not yet right (`problem` says why)."""
        self.problem = ""
        make = _MAKE.get(self.kind)
        if make is None:
            return None
        try:
            made = make(self)
            default = _DEFAULT[self.kind](self.default, COUNTS_AS) if self.default else None
            if isinstance(made, Category) and isinstance(made.values[0], int) and default is not None:
                default = _whole(self.default, COUNTS_AS)
            return replace(made, missing=not self.never, default=default)
        except (SulqError, ValueError) as error:
            self.problem = _message(error)
        return None


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
    problems: dict[str, str] = field(init=False, default_factory=dict)

    @classmethod
    def of(cls, fields: Fields) -> RegistrationDraft:
        """From a form of any step."""
        count = fields.text("columns")
        several = range(min(int(count), MAX_COLUMNS) if count.isdecimal() else 0)
        usual = {name: text for step in STEP_FIELDS.values() for name, text in step.items()}
        said = {name: fields.text(name) or text for name, text in usual.items()}
        said |= {name: fields.get(name, "") for name in VERBATIM}
        return cls([ColumnDraft.of(fields, i) for i in several], **said)

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
        carried = [known for known in STEPS if known in said and (known != step or known == "columns")]
        return [pair for known in carried for pair in said[known]]

    def reach(self, step: str) -> str:
        """The step to show: the one asked for, or the first before it that is not right yet."""
        checks: dict[str, Callable[[], object]] = {"columns": self.declared, "unit": self.unit, "budget": self.budget}
        for known in STEPS[: STEPS.index(step)]:
            if known in checks and checks[known]() is None:
                return known
        return step

    def declared(self) -> dict[str, Column] | None:
        """Every column that is not left out, if all are right."""
        found: dict[str, Column] = {}
        for one in self.columns:
            column = one.column()
            if column is not None:
                found[one.name] = column
        if any(one.problem for one in self.columns):
            self.problems["columns"] = "Some columns are not right yet; each says what is missing."
            return None
        if not found:
            self.problems["columns"] = "Declare at least one column: one that is left out cannot be asked about."
            return None
        return found

    def unit(self) -> Unit | None:
        """Whom an answer hides."""
        try:
            if self.whose == "row":
                return Unit(neighbors=self.neighbors)  # type: ignore[arg-type]  # refused if it is none
            if self.person not in [one.name for one in self.columns]:
                raise ValueError("Choose the column that says whose row it is.")
            rows: int | Literal["auto"] = "auto" if self.rows == AUTO else _whole(self.rows, "The number of rows")
            return DeclaredUnit(self.person, rows, self.neighbors, self.fold or None)  # type: ignore[arg-type]  # likewise
        except (SulqError, ValueError) as error:
            self.problems["unit"] = _message(error)
            return None

    def budget(self) -> Budget | None:
        """What may be lost in total, how its delta is divided, and the declared size."""
        try:
            self.count()
            self.shares()
            if self.way == "rho":
                return Rho(_number(self.rho, "rho"))
            epsilon = _number(self.epsilon, "epsilon")
            found = EpsilonDelta(epsilon, _number(self.delta, "delta")) if self.way == "both" else Epsilon(epsilon)
            found.exact  # noqa: B018 - refuses what is no budget
        except (SulqError, ValueError) as error:
            self.problems["budget"] = _message(error)
            return None
        return found

    def count(self) -> int | None:
        """The declared number of rows, if it may be known."""
        return _whole(self.size, "The number of rows") if self.size else None

    def shares(self) -> dict[str, float]:
        """The parts of delta that the owner sets, if there is a delta, by their names."""
        said = {name: getattr(self, name) for name in DELTA_SHARES if self.way == "both"}
        found = {name: _number(text, name) for name, text in said.items() if text}
        for name, part in found.items():
            delta_share_of(name, part)
        return found

    def warnings(self) -> list[str]:
        """What a careful owner should read before going on (T93)."""
        columns, unit, budget = self.declared(), self.unit(), self.budget()
        if columns is None or unit is None or budget is None:
            return []
        schema = Schema(self.name or "data", tuple(columns.items()))
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
        if unit.column is not None and unit.column in columns:
            found.append(f"The person's own column {unit.column!r} can be asked about; leave it out unless it must be.")
        return found

    def body(self) -> Tree:
        """The registration as the API takes it."""
        columns, unit, budget = self.declared(), self.unit(), self.budget()
        body: dict[str, object] = {
            "name": self.name,
            "file": self.data,
            "columns": {name: wire.to_json(column) for name, column in (columns or {}).items()},
            "unit": wire.to_json(unit),
            "budget": wire.to_json(budget),
            "synthetic": self.synthetic == "yes",
        }
        if self.count() is not None:
            body["size"] = self.count()
        if self.anchor:
            body["anchor"] = self.anchor
        return body | self.shares()


def looked(tree: Tree) -> list[ColumnDraft]:
    """Columns as the API's look at a file names them: names and types, no value."""
    return [ColumnDraft(item["name"], item["type"], suggested(item["type"])) for item in tree["columns"]]


def _message(error: Exception) -> str:
    return error.message if isinstance(error, SulqError) else str(error)


def _whole(text: str, what: str) -> int:
    plain = text.replace(",", "").replace("_", "").replace(" ", "")
    if not plain.lstrip("-").isdecimal() or len(plain) > 18:
        raise ValueError(f"{what} is a whole number.")
    return int(plain)


def _number(text: str, what: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise ValueError(f"{what} is a number, such as 1.5.") from None


def _truth(text: str, what: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{what} is true or false.")
    return text.lower() == "true"


def _text(text: str, _: str) -> str:
    return text


def _ends(one: ColumnDraft, read: Callable[[str, str], T]) -> tuple[T, T]:
    if not one.low or not one.high:
        raise ValueError("Give the lowest and the highest value it may have; cells outside are clamped.")
    return read(one.low, "The lowest"), read(one.high, "The highest")


def _category(one: ColumnDraft) -> Column:
    values = [line.strip() for line in one.values.split("\n") if line.strip()]
    if not values:
        raise ValueError("List the values it may have, one on each line; others count as missing.")
    whole = suggested(one.type) == "int" and all(value.lstrip("-").isdecimal() for value in values)
    return Category(tuple(int(value) for value in values) if whole else tuple(values))


_DEFAULT: Final[dict[str, Callable[[str, str], int | float | bool | str]]] = {
    "int": _whole,
    "real": _number,
    "bool": _truth,
} | dict.fromkeys(("category", "date", "timestamp", "text"), _text)
_MAKE: Final[dict[str, Callable[[ColumnDraft], Column]]] = {
    "int": lambda one: Int(*_ends(one, _whole)),
    "real": lambda one: Real(*_ends(one, _number)),
    "bool": lambda _: Bool(),
    "category": _category,
    "date": lambda one: Date(*_ends(one, _text)),
    "timestamp": lambda one: Timestamp(*_ends(one, _text)),
    "text": lambda one: Text(_whole(one.longest, "The longest")) if one.longest else Text(),
}


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
            draft.columns = looked(await visit.api.post(at("look"), {"file": draft.data}))
        except Refusal as refusal:
            return await _step(visit, draft, "file", refusal=refusal)
    return await _step(visit, draft, draft.reach(wanted))


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


async def _step(visit: Visit, draft: RegistrationDraft, name: str, *, refusal: Refusal | None = None) -> Response:
    files = (await visit.api.post(at("look"), {}))["files"] if name == "file" else []
    problem = draft.problems.get(name, "")
    reviewed: dict[str, object] = {"declared": {}, "unit": None, "budget": None, "shares": {}, "warnings": []}
    if name == "review":
        reviewed = {
            "declared": draft.declared() or {},
            "unit": draft.unit(),
            "budget": draft.budget(),
            "shares": draft.shares(),
            "warnings": draft.warnings(),
        }
        reviewed["promise"] = words.guarantee(reviewed["unit"], reviewed["budget"])  # type: ignore[arg-type]
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
        problem=problem,
        refusal=refusal,
        **reviewed,
    )
