"""What the privacy tests share: engines over generated rows, databases over frames, and replays of both."""

from __future__ import annotations

import itertools
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import sulq
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.compile.plan import draw
from sulq.curator.run import Rows
from sulq.errors import SulqError
from sulq.kernel import price
from sulq.kernel import run as kernel_run
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.kernel.private import Private
from sulq.kernel.request import Outside, Release
from sulq.language.facts import Facts
from sulq.language.privacy import Budget, Epsilon, Loss, Unit
from sulq.language.question import Question
from sulq.language.tally import Engine
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset
from sulq.testing import neighbours, replay
from sulq.testing.neighbours import Row
from sulq.testing.questions import Drawer
from sulq.testing.replay import Run, differences, record
from tests import counts, spark
from tests.faults import Plain
from tests.loaded import loaded
from tests.sources.cases import open_engine

ENGINES = ("duckdb", "memory")
REPLAYED = (*ENGINES, "postgres")  # rows in a database take longer to open: it is held to the replays that matter most
KEY = bytes(range(32))
Program = Callable[[NamedAsks], object]


def seeded(name: str) -> np.random.Generator:
    """A generator of test data: the same in every `make test`, fresh in every long run.

    The seed is printed, and taken from $SULQ_SEED to see a failure again.
    """
    fresh = int.from_bytes(os.urandom(6), "big") if counts.auditing() else zlib.crc32(name.encode())
    seed = int(os.environ.get("SULQ_SEED") or fresh)
    print(f"{name}: SULQ_SEED={seed}")
    return np.random.default_rng(seed)


class Early(DuckEngine):
    """An engine that makes no copy while questions are answered from its source; what is not waits for one."""

    def ready(self) -> None:
        if not self.early():
            super().ready()

    def _begin(self) -> None:
        super().ready()


@contextmanager
def engine(kind: str, rows: Sequence[Row], unit: Unit, *, folder: Path | None = None, suffix: str = ""):
    """An engine over generated rows, from a frame or a file in a folder.

    `kind` is one of sulq's, with `:unprepared` where the source is read for each question and `:early` where no rows
    are kept unless it takes them, or the plain one of the controls with its fault after a colon.
    """
    name, _, more = kind.partition(":")
    if name == "plain":
        yield Plain(rows, neighbours.SCHEMA, unit, more)
        return
    data: object = neighbours.arrow(rows)
    prepared: Path | bool | None = False if more == "unprepared" else None
    if folder is not None:
        data = written(neighbours.arrow(rows), folder / f"{secrets.token_hex(4)}{suffix}")
        prepared = folder / f"{data.stem}.prepared" if prepared is None and name == "duckdb" else prepared
    if name == "postgres":
        data = loaded(neighbours.arrow(rows))
    if name == "spark":
        data = spark.frame(neighbours.arrow(rows))
    if more == "early":
        early = Early(Dataset.one(Origin.of(data), neighbours.SCHEMA, unit, KEY, space="test"), prepared=prepared)
        yield early
        early.close()
        return
    opened = open_engine(
        data, schema=neighbours.SCHEMA, unit=unit, key=KEY, space="test", prepared=prepared, engine=name
    )
    try:
        if name == "spark":
            opened.ready()  # pyspark warns of itself while rows are prepared
        yield opened
    finally:
        opened.close()


def written(table: pa.Table, path: Path) -> Path:
    """A table as a file of the kind its name says."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".duckdb":
        with duckdb.connect(path) as file:
            file.register("rows", table)
            file.execute("CREATE TABLE data AS SELECT * FROM rows")
    else:
        pyarrow.parquet.write_table(table, path)
    return path


def run(source: Engine, programs: Sequence[Program], unit: Unit, budget: Budget, **options: object) -> Run:
    """One run of programs through curator and asks."""
    chosen = {"release": release, "schema": neighbours.SCHEMA} | options
    return record(source, programs, asks=NamedAsks, unit=unit, budget=budget, mechanisms=tuple(MECHANISMS), **chosen)


def replayed(
    kind: str,
    first: Sequence[Row],
    second: Sequence[Row],
    programs: Sequence[Program],
    unit: Unit,
    **options: object,
) -> list[str]:
    """What tells two data sets apart when the same programs run on both with the same noise."""
    budget = options.pop("budget", Epsilon(100))
    with engine(kind, first, unit) as one:
        recorded = run(one, programs, unit, budget, **options)
    with engine(kind, second, unit) as other:
        return differences(recorded, run(other, programs, unit, budget, earlier=recorded, **options))


def noticed(
    kind: str, tables: tuple[Sequence[Row], Sequence[Row]], program: Program, unit: Unit, *, budget: Budget
) -> bool:
    """Whether a plan that hides too little is refused by the kernel, where that certifies, or told by a replay."""
    if kind != "duckdb":
        return any("moved" in line for line in replayed(kind, *tables, [program], unit, budget=budget))
    with engine(kind, tables[0], unit) as source:
        return "uncertified" in run(source, [program], unit, budget).outcomes[0]


def beyond(first: Run, second: Run, unit: Unit) -> tuple[int, list[str]]:
    """How many blocks of sums had a certificate, and those that moved farther than it says.

    A choice or a threshold, whose move the debit records, is looked at by `differences` alone, as is what the annex
    prices.
    """
    done, found = 0, []
    for debit, checked in first.checked.items():
        calls = iter([pair for pair in zip(first.calls, second.calls, strict=True) if pair[0].debit == debit])
        for asked in checked.releases:
            source = asked.source
            known = None if isinstance(source, Outside) else checked.layouts.get(id(source.proposal))
            if known is None or asked.told:  # nothing of it is certified, or not of such sums
                draws = 1 if source.groups else len(list(kernel_run._inputs(asked)))
                assert len(list(itertools.islice(calls, draws))) == draws
                continue
            blocks = known.blocks[source.tally]
            for block, finer, gap in zip(blocks, asked.refine, _gaps(asked, calls), strict=True):
                ways = price._ways([block], unit, apart=source.groups or source.cells != 1)
                norms = [tuple(price._WAYS[way](block.moves).times(1 << finer)) for way in ways]
                most = list(map(max, *norms)) if len(norms) > 1 else list(norms[0])
                far = np.abs(gap.astype(object)).ravel()
                moved = [far.sum(), (far * far).sum(), far.max(initial=0)]
                done += 1
                if any(a > b for a, b in zip(moved, most, strict=True)):
                    found.append(f"ask {debit}: a block moved by {moved}, certified {most}")
        assert next(calls, None) is None
    return done, found


def _gaps(asked: Release, calls: Iterator[tuple[object, object]]) -> Iterator[np.ndarray]:
    """How the input of each block's noise differs between two runs; blocks of one law and grid are drawn together."""
    if asked.source.groups:
        for _, a, b in replay._inputs(*next(calls)):
            yield a - b
        return
    blocks = zip(asked.laws, asked.refine, asked.source.widths, strict=True)
    for _, alike in itertools.groupby(blocks, key=lambda each: each[:2]):
        (a, b), widths = next(calls), [width for *_, width in alike]
        yield from np.split(a.given - b.given, np.cumsum(widths)[:-1], axis=1)


def answerable(drawer: Drawer, facts: Facts, spends: Sequence[Loss | None], count: int):
    """Questions with a spend each that a plan can be drawn for; which ones is decided from public facts alone."""
    found: list[tuple[Question, Loss | None]] = []
    while len(found) < count:
        question, spend = drawer.question(), spends[int(drawer.rng.integers(len(spends)))]
        try:
            plan = draw(question, facts, spend)
        except SulqError:
            continue
        if sum(part.tally.cells * part.tally.width for part in plan.parts) <= 400:
            found.append((question, spend))
    return found


def facts_of(unit: Unit, budget: Budget, size: int | None = None) -> Facts:
    """Public facts of the generated columns."""
    return Facts(neighbours.SCHEMA, unit, budget, budget, budget, size)


def asking(question: Question, spend: Loss | None) -> Program:
    """A program of one ask."""
    return lambda asks: asks.ask(question, spend=spend)


def opened(data: object, **options: object) -> Database:
    """A database over a frame or file; by default of the generated columns, with a large budget."""
    given: dict[str, object] = {"columns": dict(neighbours.COLUMNS), "budget": Epsilon(1000)}
    return sulq.connect(data, **(given | options))


def people(cities: str, **cells: object) -> list[Row]:
    """One person for each letter: where they live, and the same cells otherwise."""
    places = {"H": "Haifa", "L": "Lod", "Y": "Yafo", "?": "Jaffa"}
    whole: Row = dict.fromkeys((name for name, _ in neighbours.COLUMNS), None) | {
        "age": 40, "gain": 10.0, "debt": -3.0, "score": 12.0, "flag": True,
    }  # fmt: skip
    return [whole | {"pid": f"p{i}", "city": places[city]} | cells for i, city in enumerate(cities)]


class Broken:
    """An engine that fails, always or on some rows; `calls` counts how often rows were asked for."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error
        self.calls = 0

    def ready(self) -> None:
        """Nothing to do."""

    def sums(self, tally: object) -> Private:
        self.calls += 1
        raise self.error

    def close(self) -> None:
        """Nothing to do."""


def broken(db: Database, error: type[BaseException]) -> Broken:
    """Give a database an engine that fails."""
    source = Broken(error)
    db._oracle.curator._rows = Rows(source, db._ledger.redeem)
    return source
