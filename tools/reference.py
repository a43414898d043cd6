"""Write the generated pages of docs/ from the code, so that they cannot say something else.

    python -m tools.reference      (make docs)

tests/test_docs.py compares each committed page with what its function here gives.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

import sulq
from sulq import errors
from sulq.cli import app
from sulq.cli.settings import SETTINGS
from sulq.compile.plan import draw
from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonDelta
from sulq.sql.compile import compile as compile_sql
from sulq.sql.released.functions import KNOWN
from sulq.sql.released.render import prepare
from sulq.sql.rows.arithmetic import CALLS
from sulq.sql.rows.text_functions import NAMES as TEXTS
from tests.sql import constructs
from tools import http, papers, threats
from tools.docstrings import ROOT, SRC, docstrings

MAP: Final = "../theory/papers.md"  # as pages of docs/reference see it
NOTE: Final = "<!-- Written by `make docs` from the code; edit the code. -->\n"
LABELS: Final = ("Privacy", "Accuracy", "Source")
KEY: Final = re.compile(r"\b(?!SR\d)([A-Z][A-Za-z]+\d{2}[a-z]?)\b")

AGGREGATES: Final = (
    "COUNT(*)", "COUNT(x)", "COUNT(DISTINCT x)", "SUM", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP",
    "COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX",
    "REGR_AVGY", "REGR_SXX", "REGR_SYY", "REGR_SXY", "MIN", "MAX", "MEDIAN", "PERCENTILE_CONT", "PERCENTILE_DISC",
)  # fmt: skip

OPERATORS: Final = {"and", "ilike", "in", "like", "neg", "not", "or"}

# What `sulq.connect` gives and what asking gives: not names of the package, but what its user holds.
HELD: Final = (
    "sulq.api.database.Database", "sulq.answers.answer.Answer", "sulq.sql.answer.SqlAnswer",
    "sulq.sql.explain.Explanation", "sulq.sql.workload.Workload", "sulq.answers.oracle.GraphTable",
    "sulq.sql.description_table.Description", "sulq.sql.description_table.DescriptionPlan",
    "sulq.inference.result.EstimateTable", "sulq.inference.result.EstimateRow",
    "sulq.inference.chi_squared.ChiSquareTest", "sulq.testing.exact",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A `Privacy:`, `Accuracy:` or `Source:` line of a docstring."""

    label: str
    text: str
    where: str  # module.qualname
    path: Path

    @property
    def keys(self) -> list[str]:
        """The references it rests on."""
        return KEY.findall(self.text)

    @property
    def only_names_papers(self) -> bool:
        """Whether it is a source line of the five papers alone: docs/theory/papers.md has it under the ids it names."""
        return self.label == "Source" and bool(papers.named(self.text)) and not self.keys


def errors_page() -> str:
    """Every error class and code, with what to do next."""
    tree = (inspect.getdoc(errors) or "").split("\n\n")[1]
    rows = [f"| `{code}` | {remedy} |" for code, remedy in sorted(errors.CODES.items())]
    return "\n".join(
        [
            "# Errors",
            NOTE,
            "Every error is a `sulq.errors.SulqError` with a stable `code`, a message, and a `remedy`: what was asked,",
            "why not, what to do. The class says who must act and what it cost:",
            "",
            "```text",
            inspect.cleandoc(tree),
            "```",
            "",
            "No message raised after a debit depends on a row; the engine's own words go to the operator's log.",
            "",
            "| code | what to do |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def python_page() -> str:
    """Every public name, from its docstring."""
    parts = ["# Python", NOTE]
    shown = [(f"sulq.{name}", getattr(sulq, name)) for name in sorted(sulq.__all__, key=str.casefold)]
    shown += [(dotted, _held(dotted)) for dotted in HELD]
    for dotted, thing in shown:
        parts += [f"## `{dotted}`", "", *_entry(dotted.rpartition(".")[2], thing, made=dotted in HELD)]
    return "\n".join(parts)


def commands_page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Commands",
        NOTE,
        "DATASET is a data file with a `NAME.sulq.toml` beside it, a data set of `sulq.toml`",
        "([configuration](configuration.md)), or the URL of a curator, asked with the token in `$SULQ_TOKEN`.",
        "Exit codes: 0 answered, 2 bad question or set-up, 3 refused by budget or access, 1 the curator's own failure.",
        "",
    ]
    for name, command in sorted(_commands("sulq", get_command(app))):
        parts += [f"## `{name}`", "", (command.help or "").partition("\n\n")[0].replace("\n", " "), ""]
        rows = [_parameter(parameter) for parameter in command.params if parameter.name != "help"]
        parts += [*rows, ""] if rows else []
    return "\n".join(parts)


def settings_page() -> str:
    """Every setting of the configuration files."""
    titles = {
        "": "The file",
        "dataset": "`[dataset.NAME]`, or `[dataset]` in NAME.sulq.toml",
        "share": "`shares`: one of these an analyst",
        "estimator": "`estimators`: one of these a function that is certified",
        "table": "`[dataset.NAME.tables.TABLE]`: of a data set of several tables",
        "unit": "`unit`",
        "budget": "`budget`",
        "column": "`[dataset.NAME.columns]`: one of these a column",
        "server": "`[server]`",
    }
    parts = [
        "# Configuration",
        NOTE,
        "`NAME.sulq.toml` beside `NAME.parquet` (or `.csv`, `.csv.gz`, `.duckdb`) declares one data set;",
        "`sulq.toml` declares several. Paths are relative to the file. An unknown key is an error that names",
        "the nearest known one.",
        "",
    ]
    for place, table in SETTINGS.items():
        parts += [f"## {titles[place]}", "", "| key | meaning |", "|---|---|"]
        parts += [*(f"| `{key}` | {text} |" for key, (_, text) in table.items()), ""]
    return "\n".join(parts)


SPELLINGS: Final = {
    "ceiling": "ceiling(avg(age))",
    "char_length": "char_length(sex), count(*)",
    "log2": "log2(count(*))",
    "log10": "log10(count(*))",
    "pow": "pow(count(*), 2)",
    "strpos": "strpos(sex, 'f'), count(*)",
    "substr": "substr(sex, 1, 1), count(*)",
}
"""Other names of functions of released values, each in a call that is answered."""


def sql_page() -> str:
    """The SQL that is answered: statistics, functions, and each construct of tests/sql/constructs.py."""
    public = constructs.facts()
    found = [(construct, outcome(construct.sql, public)) for construct in constructs.CONSTRUCTS]
    answered = sum(code == constructs.ANSWERED for _, code in found)
    rows = [
        f"| {_cell(construct.name)} | {'answered' if code == constructs.ANSWERED else 'refused'} "
        f"| {'' if code == constructs.ANSWERED else f'`{code}`'} | `{_cell(construct.sql)}` |"
        for construct, code in found
    ]
    row_functions = sorted({name for name in (*CALLS, *TEXTS) if name.isidentifier()} - OPERATORS)
    shown_functions = sorted({name for name in KNOWN if name.isidentifier()} - OPERATORS)
    spellings = [
        name
        for name, call in SPELLINGS.items()
        if outcome(f"SELECT {call} FROM people GROUP BY sex", public) == constructs.ANSWERED  # noqa: S608
    ]
    return "\n".join(
        [
            "# SQL",
            NOTE,
            "One SELECT, written as PostgreSQL writes it: see the [guide](../guide/sql.md) for how to ask. A query is",
            "one question and one debit. What is not answered is refused by its name and place in the text, with a",
            "code ([errors](errors.md)), and costs nothing. Nothing an analyst writes reaches an engine.",
            "",
            "## Statistics",
            f"{', '.join(f'`{name}`' for name in AGGREGATES)}; each with `DISTINCT` and `FILTER (WHERE ...)` where",
            "that has a meaning, of any bounded expression, and combined by any arithmetic.",
            "",
            "## Functions of rows",
            "Operators, `CASE`, `CAST`, `IN`, `BETWEEN`, `LIKE`, `IS NULL`, and:",
            f"{', '.join(f'`{name}`' for name in row_functions)}.",
            "All of them are total: what has no value (a quotient by zero, the root of a negative number) is NULL.",
            "`lower`, `upper`, and `LIKE` without regard to case know the letters A to Z alone; every other character",
            "stays as it is, whatever the machine's language. Tables have no schema but PostgreSQL's own `public`.",
            "`x IN (SELECT ...)` is unknown where PostgreSQL has it so: where `x` or one of the values is missing.",
            "",
            "## Groups",
            "Every declared value of a key is a group, and NULL where a row can have none; WHERE leaves out those",
            "that no row can be in, through `date_trunc`, `extract`, steps, `CASE` and arithmetic. A subquery",
            "grouped by the person has one row a person.",
            "",
            "## Groups that may have no rows",
            "Every declared group is returned. Where the interval of a group's count reaches 0 (at 95% for all groups",
            "at once) its means, spreads, quantiles, extremes and ratios are NULL, shown as `unknown`: last in any",
            "order, whatever `NULLS FIRST` says, and unknown to HAVING. Aggregates over released groups, but for sums",
            "alone, leave such groups out.",
            "",
            "## Functions of released values",
            "After the noise, in the SELECT list, HAVING and ORDER BY, for nothing:",
            f"{', '.join(f'`{name}`' for name in shown_functions)}.",
            f"Other spellings are read as well: {', '.join(f'`{name}`' for name in spellings)}.",
            "",
            "## Limits",
            "A pattern has at most 1,000 characters, 100 of them `%` or `_`. What the rows of one person could add to",
            "a question's time, whatever stands in them, is worked out beforehand from the declarations: the rows of a",
            "person, `Text(longest=...)`, and the patterns and functions of the whole query. Above a tenth of the time",
            "limit (3 of 30 seconds) the query is refused, free, in EXPLAIN too: `too-much-work`. Fewer or shorter",
            "patterns help, `_` being the dearest, and so do several queries; the owner may declare shorter texts or",
            "fewer rows of a person. A server also refuses what is foreseen to take a hundred times its limit, by the",
            "declared size of the table or, without one, a hundred thousand rows.",
            "",
            f"## Constructs: {answered} of {len(found)} answered",
            "Over `people(pid, age, income, sex, educ)` and `visits(vid, pid, cost, kind)`, the person being `pid`.",
            "",
            "| construct | | code | query |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def outcome(sql: str, public: Facts) -> str:
    """What becomes of a query: answered, or the code it is refused with; from public facts alone."""
    spend = EpsilonDelta(1, 1e-7)
    try:
        question = prepare(compile_sql(sql, public).program, public, spend).question
        if question is not None:  # the keys of a declared domain are public: nothing is asked for them
            draw(question, public, spend)
    except errors.QuestionError as refused:
        return refused.code
    return constructs.ANSWERED


def theorems_page() -> str:
    """Every claim of privacy or accuracy in the code: what it rests on, where it is, what tests it."""
    rows = [
        f"| {', '.join(dict.fromkeys([*claim.keys, *papers.cited(claim.text)])) or 'sulq'} "
        f"| {papers.linked(_cell(f'{claim.label}: {claim.text}'), 'papers.md')} "
        f"| `{claim.where}` | {_tests(claim.path)} |"
        for claim in claims()
        if not claim.only_names_papers
    ]
    return "\n".join(
        [
            "# Theorems, and where they live",
            NOTE,
            "Each line is taken from a docstring. The first column names entries of [references](../references.bib);",
            "*sulq* marks one that rests on no outside source: its proof stands in docs/theory or beside the code.",
            "Statements of the five papers themselves, by number, with their code and tests: [papers](papers.md).",
            "",
            "| rests on | claim | code | tests |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def threats_page() -> str:
    """Every threat by number, the tests that name it, and the bars and controls their docstrings tell."""
    named = threats.tests()
    rows = []
    for number, threat in enumerate(threats.THREATS, start=1):
        shown = named.get(number, [])
        tests = "<br>".join(f"`{one.test.removeprefix('tests/')}`" for one in shown)
        bars = "<br>".join(dict.fromkeys(_cell(one.bar) for one in shown if one.bar))
        controls = "<br>".join(dict.fromkeys(_cell(one.control) for one in shown if one.control))
        rows.append(f"| T{number} | {threat} | {tests or '-'} | {bars} | {controls} |")
    return "\n".join(
        [
            "# Threats",
            NOTE,
            "What sulq is built against, and the tests that name each threat, with the bar they set and the control",
            "beside them: something bad that must be caught, so that the test is known to see. A dash: outside this",
            "version's reach, or outside the promise altogether; the [threat model](threat-model.md) says which.",
            "",
            "| id | threat | tests | bar | control |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def claims() -> list[Claim]:
    """Every labelled claim in the docstrings of src, in order of files."""
    found = []
    for path, where, text in docstrings():
        for paragraph in text.split("\n\n"):
            for part in re.split(rf"\n(?=(?:{'|'.join(LABELS)}): )", paragraph):
                label, colon, claim = part.strip().partition(": ")
                if colon and label in LABELS:
                    found.append(Claim(label, " ".join(claim.split()), where, path))
    return found


def bibliography() -> set[str]:
    """The keys of docs/references.bib."""
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    return set(re.findall(r"^@\w+\{([^,\s]+),", text, re.MULTILINE))


PAGES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference/errors.md": errors_page,
    "docs/reference/python.md": python_page,
    "docs/reference/commands.md": commands_page,
    "docs/reference/configuration.md": settings_page,
    "docs/reference/sql.md": sql_page,
    "docs/reference/http.md": http.page,
    "docs/operate/threats.md": threats_page,
    "docs/theory/theorems.md": theorems_page,
    papers.PAGE: lambda: papers.papers_page(NOTE),
}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(), encoding="utf-8")
        print(f"wrote {name}")


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for inner in getattr(command, "commands", {}).values():
        yield from _commands(f"{name} {inner.name}", inner)


def _parameter(parameter: Any) -> str:
    shown = parameter.name.upper() if parameter.param_type_name == "argument" else ", ".join(parameter.opts)
    return f"- `{shown}`: {parameter.help or ''}"


def _held(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _entry(name: str, thing: object, *, made: bool) -> Iterator[str]:
    if isinstance(thing, str):
        yield from ("A text: the version, in the form MAJOR.MINOR.PATCH.", "")
        return
    if isinstance(thing, types.ModuleType):
        yield from ((inspect.getdoc(thing) or "").partition("\n")[0], "")
        return
    if callable(thing) and not (inspect.isclass(thing) and made):
        yield from ("```text", f"{name}{_signature(thing)}", "```", "")
    yield from (papers.linked(inspect.getdoc(thing) or "", MAP), "")
    if inspect.isclass(thing):
        members = [(key, value) for key, value in inspect.getmembers(thing) if _is_shown(key, value)]
        for key, value in members:
            called = f"{key}{_signature(value)}" if callable(value) else key
            first = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
            yield f"- `{called}`: {papers.linked(first, MAP)}"
        if members:
            yield ""


def _is_shown(key: str, value: object) -> bool:
    """Public methods and properties; a second name for a method is a place kept for a later version."""
    if key.startswith("_"):
        return False
    return isinstance(value, property) or (inspect.isroutine(value) and value.__name__ == key)


def _signature(thing: Callable[..., object]) -> str:
    text = str(inspect.signature(thing)).replace("(self, ", "(").replace("(self)", "()")
    return re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", text)  # annotations are texts and show their quotes


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _tests(path: Path) -> str:
    inside = path.relative_to(SRC)
    for place in (inside.with_suffix(""), *list(inside.parents)[:-1]):
        test = Path("tests") / place.parent / f"test_{place.name.lstrip('_')}.py"
        if (ROOT / test).is_file():
            return f"`{test}`"
    return ""


if __name__ == "__main__":
    main()
