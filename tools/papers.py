"""The map of the five papers: every statement, erratum and trap, its code, its tests, and what was measured.

    python -m tools.reference           writes docs/theory/papers.md with the other pages (make docs)
    python -m tools.papers --figures    runs the tests that record figures, then writes tools/papers_figures.json

Statements are in tools/papers.toml; places are the docstrings of src that name an id, tests those whose name or
docstring does.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.docstrings import ROOT, docstrings, tests

SOURCE: Final = ROOT / "tools" / "papers.toml"
FIGURES: Final = ROOT / "tools" / "papers_figures.json"
RECORDS: Final = {"audit.md", "mutants.md"}  # what was run, not what is explained
PAGE: Final = "docs/theory/papers.md"

# An id of a statement or a range of them, an erratum, a trap; in a name the dot and the space are underscores.
IDS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:S([0-4])[._](\d{1,2})(?:\s?[-–]\s?S[0-4]\.(\d{1,2}))?|E(\d\d)|[Tt]rap[ _]?(\d{1,2}))(?!\d)"
)
CODE_SPAN: Final = re.compile(r"(`[^`]*`)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a paper."""

    id: str
    at: str
    says: str
    use: str


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and its statements, in order."""

    title: str
    cite: str
    page: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Erratum:
    """What a paper prints and what is right; `code` where the difference changes code."""

    id: str
    at: str
    printed: str
    says: str
    short: str
    of: tuple[str, ...]
    code: bool


@functools.cache
def papers() -> dict[str, Paper]:
    """The papers by their short names."""
    found = {}
    for name, table in _source().items():
        if name not in {"errata", "traps"}:
            statements = tuple(Statement(key, **told) for key, told in table.items() if isinstance(told, dict))
            found[name] = Paper(table["title"], table["cite"], table["page"], statements)
    return found


@functools.cache
def errata() -> dict[str, Erratum]:
    """Every erratum by its id."""
    return {
        key: Erratum(
            key,
            told["at"],
            told["printed"],
            told["says"],
            told.get("short", told["says"]),
            tuple(told["of"].split()),
            bool(told.get("code", False)),
        )
        for key, told in _source()["errata"].items()
    }


@functools.cache
def traps() -> dict[str, str]:
    """The ten traps by id: "trap 1" and so on."""
    return {f"trap {number}": text for number, text in _source()["traps"].items()}


def cited(text: str) -> list[str]:
    """The references of the papers whose statements a text names."""
    cites = {one.id: paper.cite for paper in papers().values() for one in paper.statements}
    return list(dict.fromkeys(cites[key] for key in named(text) if key in cites))


def ids() -> list[str]:
    """Every id of the map, in order."""
    return [one.id for paper in papers().values() for one in paper.statements] + [*errata(), *traps()]


def named(text: str) -> list[str]:
    """The ids that a name or a docstring holds; a range such as S4.21-S4.24 names all of it."""
    found = []
    for paper, first, last, erratum, trap in IDS.findall(text):
        if erratum:
            found.append(f"E{erratum}")
        elif trap:
            found.append(f"trap {int(trap)}")
        else:
            found += [f"S{paper}.{number}" for number in range(int(first), int(last or first) + 1)]
    return found


@functools.cache
def places() -> dict[str, list[tuple[Path, str]]]:
    """File and dotted name of every docstring of src that names an id."""
    found: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path, where, text in docstrings():
        for key in dict.fromkeys(named(text)):
            found[key].append((path, where))
    return dict(found)


@functools.cache
def tested() -> dict[str, list[tuple[Path, str]]]:
    """File and name of every test that names an id, in its name or its docstring."""
    found: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path, name, text in tests():
        for key in dict.fromkeys(named(name) + named(text)):
            found[key].append((path, name))
    return dict(found)


@functools.cache
def told() -> dict[str, list[Path]]:
    """The pages of docs that name an id, but for those that are generated."""
    found: dict[str, list[Path]] = defaultdict(list)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (
            "<!-- Written by `make docs`" not in text
            and page.name not in RECORDS
            and page.parent.name not in {"decisions", "contribute"}
        ):
            for key in dict.fromkeys(named(text)):
                found[key].append(page)
    return dict(found)


def figures() -> dict[str, list[dict[str, str]]]:
    """What was measured, by id."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    if FIGURES.is_file():
        for entry in json.loads(FIGURES.read_text(encoding="utf-8")):
            found[entry["id"]].append(entry)
    return dict(found)


def implemented(key: str) -> list[tuple[Path, str]]:
    """Where an id is implemented; a slip of notation is put right where its statement is."""
    own = places().get(key, [])
    if own or key not in errata() or errata()[key].code:
        return own
    return [place for about in errata()[key].of for place in places().get(about, [])]


def lacking() -> list[str]:
    """What has no code, or no test that carries it in its name; a trap has no code of its own, and any mention does."""
    wanted = [key for key in ids() if key not in traps()]
    silent = [f"{key}: no code" for key in wanted if not implemented(key)]
    nameless = [key for key in wanted if not any(key in named(name) for _, name in tested().get(key, []))]
    return silent + [f"{key}: no test" for key in (*nameless, *(trap for trap in traps() if trap not in tested()))]


def used(name: str) -> object:
    """What a public name of the map is: `db.sum` of a database, `sulq.learn.PCA` of the package."""
    first, *parts = name.split(".")
    if first == "db":
        thing: Any = importlib.import_module("sulq.api.database").Database
    else:
        thing = importlib.import_module(first)
    for part in parts:
        if inspect.ismodule(thing) and not hasattr(thing, part):
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part)
    return thing


def anchor(key: str) -> str:
    """The id of an entry in the page: s4-10, e35, trap-4."""
    return re.sub(r"[. ]", "-", key).lower()


def linked(text: str, page: str) -> str:
    """The text with each id outside code as a link into `page`, the map as its reader's folder sees it."""
    known = set(ids())

    def link(match: re.Match[str]) -> str:
        found = named(match[0])
        return f"[{match[0]}]({page}#{anchor(found[0])})" if found and found[0] in known else match[0]

    parts = CODE_SPAN.split(text)
    return "".join(part if part.startswith("`") else IDS.sub(link, part) for part in parts)


def papers_page(note: str) -> str:
    """The map, a section a paper, then errata and traps."""
    counts = f"{sum(len(paper.statements) for paper in papers().values())} statements, {len(errata())} errata"
    parts = [
        "# The papers, statement by statement",
        note,
        f"{counts} and {len(traps())} traps of the five papers sulq is built on: what each says, what is corrected,",
        "where it is in the code, what tests it, and where a theorem was measured, the figure beside the paper's.",
        "The numbers S0.1 to S4.29 are ours; they stand in docstrings and in the names of tests. Each paper has a page",
        "that reruns its algorithms in order. Claims that rest on other sources: [theorems](theorems.md).",
        "",
        *(f"- [{paper.title}](../papers/{paper.page}), [{name}](#{name})" for name, paper in papers().items()),
        "- [Errata](#errata), [traps](#traps)",
        "",
    ]
    for name, paper in papers().items():
        parts += [
            f'## {name}\n<a id="{name}"></a>',
            "",
            f"{paper.title} [{paper.cite}]; [rerun](../papers/{paper.page}).",
            "",
        ]
        for one in paper.statements:
            parts += _statement(one)
    parts += ["## Errata", "", "‡: changes code, and a test named after it shows that the printed version fails.", ""]
    for erratum in errata().values():
        parts += _erratum(erratum)
    parts += ["## Traps", ""]
    for key, text in traps().items():
        parts += [f'<a id="{anchor(key)}"></a>', f"**{key.capitalize()}.** {text}"]
        parts += [f"- code: {_places(places()[key])}"] if key in places() else []
        parts += [f"- tests: {_tests(key)}", ""]
    return "\n".join(parts)


def main() -> None:
    """Run the tests that record figures and keep what they recorded."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--figures", action="store_true", required=True, help="measure anew (minutes)")
    parser.parse_args()
    entries = {(entry["id"], entry["text"]): entry for entry in measured()}
    order = {key: place for place, key in enumerate(ids())}
    kept = [entries[key] for key in sorted(entries, key=lambda key: (order[key[0]], key[1]))]
    lines = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in kept)
    FIGURES.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"wrote {FIGURES.relative_to(ROOT)}: {len(kept)} figures")


def measured() -> list[dict[str, str]]:
    """The figures of all tests that record one, run now."""
    recording = [f"{path.relative_to(ROOT)}::{name}" for path, name, _ in recorders()]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "figures.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *recording]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "SULQ_FIGURES": str(log)}, check=True)
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def recorders() -> Iterator[tuple[Path, str, str]]:
    """File, name and text of every test that calls `figure`."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "import figure\n" in text:
            for function in re.split(r"(?m)^(?=def |@)", text):
                name = re.search(r"(?m)^def (test_\w+)", function)
                if name and "figure(" in function:
                    yield path, name[1], function


def _source() -> dict[str, Any]:
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))


def _statement(one: Statement) -> Iterator[str]:
    yield f'<a id="{anchor(one.id)}"></a>'
    yield f"**{one.id}** ({one.at}). {one.says}"
    for erratum in errata().values():
        if one.id in erratum.of:
            yield f"- corrected, [{erratum.id}](#{anchor(erratum.id)}): {erratum.short}"
    yield f"- code: {_use(one.use)}; {_places(implemented(one.id))}"
    yield f"- tests: {_tests(one.id)}"
    yield from _figures(one.id)
    pages = [page for page in told().get(one.id, []) if page.parent.name != "papers"]
    if pages:
        yield f"- read: {', '.join(f'[{page.stem}]({_link(page)})' for page in pages)}"
    yield ""


def _erratum(erratum: Erratum) -> Iterator[str]:
    about = ", ".join(f"[{key}](#{anchor(key)})" for key in erratum.of)
    yield f'<a id="{anchor(erratum.id)}"></a>'
    yield f"**{erratum.id}**{' ‡' if erratum.code else ''} ({erratum.at}; {about}). Printed: {erratum.printed}."
    yield f"- right: {erratum.says}"
    yield f"- code: {_places(implemented(erratum.id))}"
    yield f"- tests: {_tests(erratum.id)}"
    yield from _figures(erratum.id)
    yield ""


def _figures(key: str) -> Iterator[str]:
    for entry in figures().get(key, []):
        yield f"- measured: {entry['text']}: {entry['value']}; the paper: {entry['paper']}"


def _use(name: str) -> str:
    thing = used(name)
    if name.startswith("db.") or (name.count(".") == 1 and not inspect.ismodule(thing)):
        return f"[`{name}`](../reference/python.md)"
    file = inspect.getsourcefile(inspect.unwrap(thing))  # type: ignore[arg-type]
    return f"[`{name}`]({_link(Path(file or ''))})"


def _places(found: list[tuple[Path, str]]) -> str:
    return ", ".join(f"[`{where.removeprefix('sulq.')}`]({_link(path)})" for path, where in dict.fromkeys(found)) or "-"


def _tests(key: str) -> str:
    files: dict[Path, list[str]] = defaultdict(list)
    for path, name in tested().get(key, []):
        files[path].append(f"`{name}`")
    inside = ROOT / "tests"
    shown = [f"[{path.relative_to(inside)}]({_link(path)}) {', '.join(names)}" for path, names in files.items()]
    return "; ".join(shown) or "-"


def _link(path: Path) -> str:
    return Path(os.path.relpath(path, ROOT / "docs" / "theory")).as_posix()


if __name__ == "__main__":
    main()
