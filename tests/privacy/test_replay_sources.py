"""Record and replay where rows are joined with long lists, lie in several files, or are read before they are kept."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sulq import Category, EpsilonDelta, Sums, Unit, col
from sulq.data_files import Files
from sulq.kernel.private import Stored
from sulq.kernel.request import Statement
from sulq.language.privacy import Epsilon, Rho
from sulq.language.rowfn import Lit
from sulq.sources import cell_reading, source
from sulq.sources.duckdb import early_rows, kept_rows
from sulq.sources.duckdb.runner import CursorRunner
from sulq.sources.origin import Origin
from sulq.sources.source import RegisteredTable
from sulq.sources.tables import Dataset
from sulq.testing import neighbours
from sulq.testing.neighbours import Row
from sulq.testing.questions import Drawer
from sulq.testing.replay import Run, differences
from tests import counts
from tests.privacy.cases import KEY, Early, answerable, asking, beyond, facts_of, people, run, seeded, written
from tests.sources.cases import open_engine

LONG = cell_reading.MAX_LISTED_CATEGORIES + 1
TOWNS = ("Haifa", "Lod", "Yafo", *(f"town {number}" for number in range(LONG - 3)))
CODES = (1, 2, 5, *range(10, LONG + 7))
LISTED = {"city": Category(TOWNS), "code": Category(CODES)}
SCHEMA = replace(
    neighbours.SCHEMA, columns=tuple((name, LISTED.get(name, column)) for name, column in neighbours.COLUMNS)
)
BUDGET = EpsilonDelta(1000, 1e-6)
SPENDS = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))
UNITS = (
    Unit(),
    Unit("pid", 1),
    Unit("pid", 3, fold="spelling"),
    Unit(None, 1, "replace_one"),
    Unit("pid", 2, "replace_one"),
    Unit(None, 1, "zero_out"),
    Unit("pid", 2, "zero_out", fold="case"),
)
BOUNDED = re.compile(r" AND b\d+ <= [\d.]+e0 THEN floor")
PARTS = 3
PATHS = {  # how rows are given: the kind of file, of how many parts, whether long lists are declared
    "long lists": ("", 1, True),
    "parts in Parquet": (".parquet", PARTS, False),
    "parts in CSV": (".csv", PARTS, False),
    "parts and long lists": (".parquet", PARTS, True),
    "parts before the copy": (".parquet", PARTS, False),
    "records before the copy": ("", 1, True),
}


@contextmanager
def opened(path: str, rows: Sequence[Row], unit: Unit, folder: Path) -> Iterator[tuple[object, dict[str, object]]]:
    """An engine over rows that are given so, and the options of a run. Rows keep their order from part to part."""
    suffix, parts, listed = PATHS[path]
    schema = SCHEMA if listed else neighbours.SCHEMA
    table = neighbours.arrow(rows)
    given: object = table
    if suffix:
        name = secrets.token_hex(4)
        ends = [len(rows) * i // parts for i in range(parts + 1)]
        slices = [table.slice(a, b - a) for a, b in itertools.pairwise(ends)]
        given = [written(one, folder / f"{name}-{i}{suffix}") for i, one in enumerate(slices)]
    if path.endswith("before the copy"):
        dataset = Dataset.one(Origin.of(given), schema, unit, KEY, space="test")
        engine: object = Early(dataset, prepared=folder / f"{secrets.token_hex(4)}.prepared" if suffix else None)
    else:
        engine = open_engine(given, schema=schema, unit=unit, key=KEY, space="test", engine="duckdb")
    try:
        yield engine, {"schema": schema}
    finally:
        engine.close()


def spread(rng: np.random.Generator, rows: Sequence[Row]) -> list[Row]:
    """The same rows, some with other values of the long lists."""
    said = {"city": TOWNS, "code": CODES}
    return [
        one | {name: of[int(rng.integers(LONG))] for name, of in said.items() if rng.random() < 0.3} for one in rows
    ]


@pytest.mark.audit
@pytest.mark.parametrize("path", PATHS)
def test_neighbours_are_told_apart_by_noise_alone_however_rows_are_given(path: str, tmp_path: Path) -> None:
    """Calls, bytes, errors, ledger and log are equal, and inputs within the certificate (trap 7, T6, T11, T14, T18).

    Control: the faults below.
    """
    planned = counts.count(f"replay pairs of {path}", short=24, long=20_000)
    rng = seeded(f"replay of {path}")
    several, others = min(10, planned), min(3, max(planned // 10, 1))
    early = path.endswith("before the copy")
    units = [unit for unit in UNITS if not early or (unit.column is None and unit.neighbors != "zero_out")]
    done, number, compared = 0, 0, 0
    while done < planned:
        unit = units[number % len(units)]
        rows = spread(rng, neighbours.table(rng, unit, int(rng.integers(0, 9))))
        facts = replace(facts_of(unit, BUDGET), schema=SCHEMA if PATHS[path][2] else neighbours.SCHEMA)
        asked = answerable(Drawer(rng), facts, SPENDS, several)
        programs = [asking(*one) for one in asked]
        with opened(path, rows, unit, tmp_path) as (engine, options):
            first = run(engine, programs, unit, BUDGET, **options)
        assert [each for each in first.outcomes if each.startswith("CuratorError") or "uncertified" in each] == []
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:others]:
            with opened(path, pairs[i].second, unit, tmp_path) as (engine, options):
                second = run(engine, programs, unit, BUDGET, earlier=first, **options)
            assert differences(first, second) == [], (unit, pairs[i].what, asked)
            blocks, farther = beyond(first, second, unit)
            assert farther == [], (unit, pairs[i].what, asked)
            compared += blocks
            done += len(programs)
        number += 1
    assert compared >= done // 2


TOWNSPEOPLE = Sums((Lit(1),), None, (col("city"),))
GAIN = Sums((col("gain"),))


def told(path: str, folder: Path, question: Sums, *, gain: float = 10.0) -> list[str]:
    """What tells twelve people from the same with one more at their end; the whole is otherwise as it should be."""
    first, runs = people("HLYHLYHLYHLY"), list[Run]()
    for rows in (first, first + people("Y", gain=gain)):
        with opened(path, rows, Unit(), folder) as (engine, options):
            earlier = {"earlier": runs[0]} if runs else {}
            runs.append(run(engine, [asking(question, Epsilon(1))], Unit(), BUDGET, **earlier, **options))
    failed = [each for one in runs for each in one.outcomes if "Error" in each]
    return failed or differences(*runs) + beyond(*runs, Unit())[1]


@pytest.mark.parametrize("path", PATHS)
def test_the_comparison_of_the_controls_finds_nothing_without_a_fault(path: str, tmp_path: Path) -> None:
    """One more person is noise's alone to tell."""
    assert told(path, tmp_path, TOWNSPEOPLE) == told(path, tmp_path, GAIN, gain=1e300) == []


@pytest.mark.parametrize("fault", ["doubled", "dropped"])
@pytest.mark.parametrize("path", [path for path in PATHS if path.startswith("parts")])
def test_a_reader_that_drops_or_doubles_a_part_is_caught(
    path: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: one that reads the last part twice, and one that leaves out parts of an odd number of rows."""
    honest = source._several

    def faulty(found: Files, *more: object) -> object:
        places = range(len(found.paths))
        kept = [*places, places[-1]]
        if fault == "dropped":
            kept = [i for i in places if i == 0 or _rows(found.paths[i]) % 2 == 0]
        paths, values = (tuple(each[i] for i in kept) for each in (found.paths, found.values))
        return honest(replace(found, paths=paths, values=values), *more)

    monkeypatch.setattr(source, "_several", faulty)
    notice = "unreadable-data" if "CSV" in path else "moved"  # a CSV file's records are counted when it is checked
    assert any(notice in each for each in told(path, tmp_path, TOWNSPEOPLE))


def _rows(path: Path) -> int:
    """How many records a part has."""
    if path.suffix == ".csv":
        return len(path.read_text(encoding="utf-8").splitlines()) - 1
    return pq.read_metadata(path).num_rows


@pytest.mark.parametrize("fault", ["by the rows", "twice"])
@pytest.mark.parametrize("path", [path for path in PATHS if path.endswith("long lists")])
def test_a_list_with_other_codes_is_caught(
    path: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: codes that are exchanged where the rows are of an odd number, and a value that stands twice."""
    honest = kept_rows.lists

    def faulty(registered: RegisteredTable) -> list[tuple[str, list[str]]]:
        found = honest(registered)
        if fault == "twice":
            return [(name, [*values, "Yafo"]) for name, values in found]
        return [(name, values[:: -1 if (registered.source.rows or 0) % 2 else 1]) for name, values in found]

    monkeypatch.setattr(kept_rows, "lists", faulty)
    notice = "unfit-rows" if fault == "twice" else "moved"  # more rows than were read are refused by the kernel
    assert any(notice in each for each in told(path, tmp_path, TOWNSPEOPLE))


@pytest.mark.parametrize("path", [path for path in PATHS if path.endswith("before the copy")])
def test_records_that_are_summed_without_a_clamp_are_caught(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: the certified text is not the one that runs, whose numbers have no highest value."""
    ran = list[str]()

    class Unclamped(CursorRunner):
        def columns(self, statements: Sequence[Statement]) -> list[list[Stored]]:
            scans = [replace(each.scan, sql=BOUNDED.sub(" THEN floor", each.scan.sql)) for each in statements]
            ran.extend(new.sql for new, old in zip(scans, statements, strict=True) if new != old.scan)
            return super().columns([replace(each, scan=scan) for each, scan in zip(statements, scans, strict=True)])

    monkeypatch.setattr(early_rows, "CursorRunner", Unclamped)
    assert any("moved" in each for each in told(path, tmp_path, GAIN, gain=1e9))
    assert len(ran) == 2
