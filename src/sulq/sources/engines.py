"""Engines: rows to exact integers. Named here, loaded when used, never discovered."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, Protocol, cast, runtime_checkable

from sulq.errors import SetupError
from sulq.language.domain import Category, Schema, is_text
from sulq.language.estimator import Property
from sulq.language.tally import Engine
from sulq.sources.tables import Dataset

ENGINES: Final[dict[str, str]] = {
    "duckdb": "sulq.sources.duckdb.engine:DuckEngine",
    "memory": "sulq.sources.duckdb.engine:MemoryEngine",
    "postgres": "sulq.sources.postgres.engine:PostgresEngine",
    "spark": "sulq.sources.spark.engine:SparkEngine",
}
"""Each engine's name and its class, which opens data."""

ELSEWHERE: Final = {
    "postgres": ("psycopg", "Tables in PostgreSQL need the extra 'postgres'."),
    "spark": ("pyspark", "Tables on Spark need the extra 'spark'."),
}
"""Engines whose tables lie with them: the package each needs, and what to say where it is missing."""


class OpenEngine(Engine, Protocol):
    """An engine that can say what its rows were read from."""

    certifies: bool
    """Whether it runs statements that the kernel certified, and nothing else in their place (docs/theory/kernel.md)."""

    def fingerprint(self, table: str = "") -> str:
        """Name, size and time of a table's data file, or "frame"; nothing of the rows."""
        ...

    def places(self, table: str = "") -> int | None:
        """How many rows a table's source has, before any is kept, where that is known and public (SR6)."""
        ...


@runtime_checkable
class Counting(Protocol):
    """An engine that knows how many rows public tables have only once it has copied them."""

    def counted(self) -> Dataset:
        """The dataset with those numbers."""
        ...


def open_dataset(
    dataset: Dataset,
    *,
    prepared: str | Path | bool | None = None,
    renew: bool = False,
    engine: str = "duckdb",
    progress: Callable[[float], None] | None = None,
) -> OpenEngine:
    """Open the tables of a dataset for summing; what is missing or cannot be read is refused before anything is spent.

    Args:
        dataset: The tables: files, frames, tables of Spark, or addresses of tables in PostgreSQL.
        prepared: Where the prepared copy lies; None: in memory; False: none, the source is read for each question.
        renew: Take a source that changed since it was prepared.
        engine: A name of ENGINES; tables in a database are asked there.
        progress: Told how far preparing has come, from 0 to 1.
    """
    _check(engine, [given.facts.schema for given in dataset.tables])
    if dataset.erased and any(given.origin.home for given in dataset.tables):
        why = "Persons were erased under this ledger; from tables in a database or on Spark none can be left out."
        raise SetupError("not-available", why, "Delete their rows there, and put the table under a ledger of its own.")
    module, _, name = ENGINES[_where(engine, dataset)].partition(":")
    opened = getattr(importlib.import_module(module), name)(
        dataset,
        prepared=Path(prepared) if isinstance(prepared, (str, Path)) else prepared,
        renew=renew,
        progress=progress,
    )
    if getattr(opened, "unsure", False):
        try:
            opened.ready()
        except BaseException:
            opened.close()
            raise
    return cast("OpenEngine", opened)


def check_rows(dataset: Dataset, size: int | None, engine: OpenEngine) -> None:
    """Stop the owner whose declared size, or a property's, is not the number of rows that all neighbours have (SR6).

    Means are sums divided by it, and no exchange of rows makes a table one of another size [S4.28]; where a neighbour
    may have another number of rows nothing is looked at. Engines that do not know the number, PostgreSQL's and Spark's,
    refuse such a unit.
    """
    facts, unit = dataset.tables[0].facts, dataset.unit
    public = unit.neighbors == "replace_one" and unit.column is None and not facts.public and facts.graph is None
    found = engine.places(facts.schema.table) if public else None
    if found is None:
        return
    if size is not None and found != size:
        raise SetupError(
            "bad-declaration",
            f"size says {size:,}; {facts.schema.table} has {found:,} rows: means would be divided by a wrong number.",
            "Declare the number of rows, or leave size out.",
        )
    for name, told in ((item.name, item.certificate) for item in facts.estimators):
        if isinstance(told, Property) and told.rows != found:
            raise SetupError(
                "bad-declaration",
                f"The property {name!r} is of {told.rows:,} rows; {facts.schema.table} has {found:,}, and rows that "
                "are exchanged (replace_one) never make it one of another size.",
                f"Declare the property with rows={found}, or the data with a unit whose rows come and go (add_remove).",
            )


def _where(engine: str, dataset: Dataset) -> str:
    """The engine that holds these tables: those in a database or on Spark are asked there, and nowhere else."""
    homes = {given.origin.home for given in dataset.tables}
    if homes == {""} and engine not in ELSEWHERE:
        return engine
    (home, *others) = homes
    if others or not home or engine not in ("duckdb", home):
        raise SetupError(
            "engine-not-available",
            "Tables in PostgreSQL, or on Spark, are asked there, all of them, and nothing else is.",
            "Leave engine= out, and name tables of one place.",
        )
    need(home)
    return home


def need(home: str) -> None:
    """Refuse tables of a place whose package is not installed."""
    package, missing = ELSEWHERE[home]
    if importlib.util.find_spec(package) is None:
        raise SetupError("missing-extra", missing, f"pip install 'sulq[{home}]'")


def load(engine: str) -> None:
    """Load an engine and what it needs, where that is installed: it is then there for `open_dataset`."""
    package, _ = ELSEWHERE.get(engine, ("", ""))
    if not package or importlib.util.find_spec(package) is not None:
        importlib.import_module(ENGINES[engine].partition(":")[0])


def _check(engine: str, schemas: Iterable[Schema]) -> None:
    if not isinstance(engine, str):
        raise SetupError("engine-not-available", "An engine is named by a text.")
    if engine not in ENGINES:
        raise SetupError("engine-not-available", f"There is no engine {engine[:40]!r}.")
    for name, column in (item for schema in schemas for item in schema.columns):
        texts = "".join(map(str, column.values)) if isinstance(column, Category) else ""
        if "\x00" in texts or not is_text(texts):
            raise SetupError("bad-declaration", f"A category of column {name!r} is no text that data can hold.")


Progress = Callable[[float], None]
STOP_SECONDS: Final = 0.02


@runtime_checkable
class Interruptible(Protocol):
    """An engine whose statements can be ended."""

    def interrupt(self, threads: Collection[int]) -> None:
        """End the statements that these threads run; what they were asked for fails, charged."""
        ...


@runtime_checkable
class Early(Protocol):
    """An engine that may answer certified questions before its rows are kept."""

    def early(self) -> bool:
        """Whether it does now."""
        ...

    def ready_aside(self, *, at_once: bool) -> None:
        """Prepare the rows beside questions, the first of which goes before unless it is to be done at once."""
        ...

    def stop(self) -> None:
        """End what is being prepared."""
        ...


class Preparation:
    """Prepares rows in this thread or in one of its own; callers block until they are ready.

    The next caller gets the exception of a preparation that failed. Nothing is paid until `ready` came back, so a
    failure costs nothing. Progress is an estimate from the owner's rows, so it is told to the owner alone.
    """

    def __init__(
        self, prepare: Callable[[], None], progress: Progress | None = None, waiting: Progress | None = None
    ) -> None:
        self._prepare = prepare
        self._progress = progress
        self._waiting = waiting  # told the same while somebody waits
        self._waiters = 0
        self._early: Early | None = None
        self._wanted = False  # whether the owner asked for it, who then waits for it to the end
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._part = 0.0
        self._failed: Exception | None = None

    def of(self, engine: object) -> None:
        """Prepare the rows of this engine from now on."""
        self._early = engine if isinstance(engine, Early) else None

    def tell(self, part: float) -> None:
        """Take note of how far it has come, from 0 to 1, and pass it on."""
        self._part = part
        if self._progress is not None:
            self._progress(part)
        if self._waiting is not None and self._waiters:
            self._waiting(part)

    @property
    def part(self) -> float | None:
        """How far it has come, from 0 to 1; None where nothing is made ready aside."""
        thread = self._thread
        return self._part if thread is not None and thread.is_alive() else None

    def start(self, *, wanted: bool = True) -> None:
        """Make the rows ready aside; at most one thread does. The program does not end before it has."""
        with self._starting:
            self._wanted = self._wanted or wanted
            if self.part is None:
                self._part = 0.0
                # Begun from a thread that may end with the program, it is none such itself.
                thread = threading.Thread(target=self._work, name="sulq-preparing", daemon=False)
                thread.start()
                self._thread = thread  # whoever waits joins it, which has begun

    def _work(self) -> None:
        try:
            if self._early is None:
                self._prepare()
            else:
                self._early.ready_aside(at_once=self._wanted)
        except Exception as error:  # noqa: BLE001 - raised again where it is heard
            self._failed = error

    def ready(self) -> None:
        """Make sure that rows can be asked: as they stand, while they are prepared aside, or else prepared."""
        if self._early is not None and self._early.early():
            self.start(wanted=False)
        else:
            self.finish()

    def finish(self) -> None:
        """Wait for what is made ready aside, raise what became of it, once; and make sure that the rows are there."""
        self._waiters += 1
        try:
            self.wait()
            with self._starting:
                failed, self._failed = self._failed, None
            if failed is not None:
                raise failed
            self._prepare()
        except BaseException:
            if self._waiting is not None:
                self._waiting(1.0)  # so that nothing of it stays on a terminal
            raise
        finally:
            self._waiters -= 1

    def wait(self, seconds: float | None = None) -> None:
        """Until nothing is made ready aside any more, or for so long."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def close(self) -> None:
        """The same, but end what was begun only because a question came."""
        while self._early is not None and not self._wanted and self.part is not None:
            self._early.stop()  # again: a statement that is about to begin does not hear of it
            self.wait(STOP_SECONDS)
        self.wait()
