"""What a report is to hold, as its author writes it down: a TOML file, or a mapping of the same form."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast

from sulq.answers import wire
from sulq.errors import QuestionError, SetupError
from sulq.language.privacy import LOSS_BY_FIELDS, Loss

CHARTS: Final = ("auto", "bars", "none")  # by themselves, dates and years are a line
METHODS: Final = ("aim", "mwem")  # of synthetic rows
MAX_TABLES: Final = 500
MAX_SPEC_BYTES: Final = 2**20
MAX_TEXT: Final = 20_000  # letters of one text
USUAL_LEVEL: Final = 0.95
T = TypeVar("T")

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "the report": ("title", "dataset", "author", "about", "spend", "level", "show_budget", "table", "synthetic"),
    "table": ("title", "sql", "about", "chart", "weight"),
    "synthetic": ("columns", "method", "rows", "bins", "about", "spend"),
}


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table: its title, the query it answers, words of the author's, its chart, and how much it counts."""

    title: str
    sql: str
    about: str = ""
    chart: str = "auto"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class SyntheticPart:
    """Synthetic rows beside the tables, at a price of their own."""

    columns: tuple[str, ...]
    spend: Loss
    method: str = "aim"
    rows: int | None = None
    bins: int | None = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class ReportSpec:
    """A report's title, words and tables.

    `spend`: of all tables together, at one debit. `level`: of the intervals. `show_budget`: whether readers are told
    the whole budget of the data and what of it is left. `dataset`: what the command line asks, unless it is told.
    """

    title: str
    tables: tuple[ReportTable, ...]
    spend: Loss | None = None
    level: float = USUAL_LEVEL
    author: str = ""
    about: str = ""
    dataset: str = ""
    show_budget: bool = False
    synthetic: SyntheticPart | None = field(default=None)

    @classmethod
    def read(cls, source: object) -> Self:
        """From a TOML file, a mapping of the same form, or as it is.

        Raises:
            SetupError: `missing-file`: the file cannot be read.
            QuestionError: `bad-report`: what is wrong with it, and where.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, (str, Path)):
            return cls._of(_parsed(Path(source)))
        if not isinstance(source, Mapping):
            raise _bad("A report is made from a TOML file, or from a mapping of its form.")
        return cls._of(source)

    @classmethod
    def _of(cls, tree: Mapping[str, Any]) -> Self:
        part = _Part("the report", tree, "")
        tables = part.get("table", list, ())
        if not 1 <= len(tables) <= MAX_TABLES:
            raise _bad(f"A report has 1 to {MAX_TABLES} tables, each under [[table]].")
        synthetic = tree.get("synthetic")
        return cls(
            title=part.text("title", needed=True),
            tables=tuple(_table(one, f"table {number}: ") for number, one in enumerate(tables, 1)),
            spend=None if "spend" not in tree else part.spend(),
            level=part.number("level", USUAL_LEVEL, 0.0, 1.0),
            author=part.text("author"),
            about=part.text("about"),
            dataset=part.text("dataset"),
            show_budget=part.get("show_budget", bool, False),
            synthetic=None if synthetic is None else _synthetic(synthetic),
        )

    def to_json(self) -> dict[str, object]:
        """As plain JSON, of the form that `read` takes."""
        told: dict[str, object] = {name: getattr(self, name) for name in ("title", "author", "about", "dataset")}
        told |= {"level": self.level, "show_budget": self.show_budget}
        told |= {} if self.spend is None else {"spend": wire.to_json(self.spend)}
        told["table"] = [{name: getattr(one, name) for name in KEYS["table"]} for one in self.tables]
        if self.synthetic is not None:
            part = {name: getattr(self.synthetic, name) for name in ("columns", "method", "rows", "bins", "about")}
            part |= {"columns": list(self.synthetic.columns), "spend": wire.to_json(self.synthetic.spend)}
            told["synthetic"] = {name: value for name, value in part.items() if value is not None}
        return told


@dataclass(frozen=True, slots=True)
class _Part:
    """A table of the specification: which keys it knows, what it says, and where it stands."""

    kind: str
    tree: Mapping[str, Any]
    where: str

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Mapping):
            raise _bad(f"{self.where}a table of settings is expected here: key = value.")
        for key in self.tree:
            if key not in KEYS[self.kind]:
                nearest = difflib.get_close_matches(str(key), KEYS[self.kind], n=1, cutoff=0.0)[0]
                told = f"{self.where}{self.kind} has no setting {str(key)[:80]!r}; the nearest is {nearest!r}."
                raise _bad(told)

    def get(self, key: str, kind: type[T], usual: object) -> T:
        """A setting of a kind."""
        found = self.tree.get(key, usual)
        if found is not usual and (not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool)):
            raise _bad(f"{self.where}{key} must be {_KINDS[kind]}.")
        return cast("T", found)

    def text(self, key: str, *, needed: bool = False) -> str:
        """A text; one that is needed is not empty."""
        found = self.get(key, str, "")
        if needed and not found.strip():
            raise _bad(f"{self.where}{self.kind} needs {key!r}, a text.")
        if len(found) > MAX_TEXT:
            raise _bad(f"{self.where}{key} is longer than {MAX_TEXT:,} letters.")
        return found

    def number(self, key: str, usual: float, low: float, high: float) -> float:
        """A number strictly between two others."""
        found = self.tree.get(key, usual)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not low < found < high:
            most = "" if high == math.inf else f" and below {high:g}"
            raise _bad(f"{self.where}{key} must be a number above {low:g}{most}.")
        return float(found)

    def whole(self, key: str) -> int | None:
        """A whole number above 0, where there is one."""
        found = self.get(key, int, None)
        if found is not None and found < 1:
            raise _bad(f"{self.where}{key} must be a whole number from 1.")
        return found

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """One of some words, the first by default."""
        found = self.get(key, str, choices[0])
        if found not in choices:
            raise _bad(f"{self.where}{key} is one of: {', '.join(choices)}.")
        return found

    def spend(self) -> Loss:
        """A price: { epsilon = 1.0 }, { epsilon = 1.0, delta = 1e-6 } or { rho = 0.1 }; or as Python has it."""
        told = self.tree.get("spend")
        if isinstance(told, Loss):
            return told
        if isinstance(told, Mapping) and "kind" in told:
            told = wire.from_json(dict(told))
            if isinstance(told, Loss):
                return told
        kind = LOSS_BY_FIELDS.get(frozenset(told)) if isinstance(told, Mapping) else None
        if kind is None or not isinstance(told, Mapping):
            ways = "{ epsilon = 1.0 }, { epsilon = 1.0, delta = 1e-6 } or { rho = 0.1 }"
            raise _bad(f"{self.where}spend is {ways}.")
        found = kind(**told)
        found.exact  # noqa: B018 - refuses what is no loss
        return found


_KINDS: Final[Mapping[type, str]] = {
    str: "a text in quotes", int: "a whole number", bool: "true or false", list: "a list",
}  # fmt: skip


def _table(tree: Mapping[str, Any], where: str) -> ReportTable:
    part = _Part("table", tree, where)
    return ReportTable(
        part.text("title", needed=True),
        part.text("sql", needed=True),
        part.text("about"),
        part.choice("chart", CHARTS),
        part.number("weight", 1.0, 0.0, math.inf),
    )


def _synthetic(tree: Mapping[str, Any]) -> SyntheticPart:
    part = _Part("synthetic", tree, "synthetic: ")
    columns = part.get("columns", list, ())
    if not columns or not all(isinstance(name, str) for name in columns):
        raise _bad("synthetic: columns is a list of columns' names.")
    return SyntheticPart(
        tuple(columns),
        part.spend(),
        part.choice("method", METHODS),
        part.whole("rows"),
        part.whole("bins"),
        part.text("about"),
    )


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as opened:
            text = opened.read(MAX_SPEC_BYTES + 1)
    except OSError:
        raise SetupError("missing-file", f"The report's specification {path} cannot be read.") from None
    if len(text) > MAX_SPEC_BYTES:
        raise _bad(f"A specification is at most {MAX_SPEC_BYTES:,} bytes long.")
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(f"{path.name} is not TOML: {error}.") from None


def _bad(why: str) -> QuestionError:
    return QuestionError("bad-report", why)
