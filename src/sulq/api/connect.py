"""`sulq.connect`: a path or a frame gives a database, a URL the curator behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sulq.addresses import begun, is_address
from sulq.api.declarations import (
    in_spark,
    is_curator,
    owned_tables,
    prepared_copy,
    private_sources,
    warn_of_shared_database,
)
from sulq.errors import SetupError
from sulq.language.domain import is_text
from sulq.language.facts import Tables
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Number, Rho, SubLinear, Unit, delta_share_of
from sulq.language.rows_choice import check_auto

if TYPE_CHECKING:
    from sulq.api.asynchronous import AsyncClient
    from sulq.api.client import Client
    from sulq.api.database import Database
    from sulq.api.row_check import RowCheck


@overload
def connect(data: str, *, token: str, insecure: bool = False, patience: float | None = None) -> Client: ...
@overload
def connect(
    data: object,
    *,
    table: str | None = None,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    anchor: str | os.PathLike[str] | None = None,
    prepared: str | os.PathLike[str] | bool | None = None,
    engine: str = "duckdb",
    renew: bool = False,
    progress: Callable[[float], None] | None = None,
    token: None = None,
    keys: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
    new_people: bool = False,
    basic_share: Number | None = None,
    key_share: Number | None = None,
) -> Database: ...
def connect(
    data: object,
    *,
    table: str | None = None,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    anchor: str | os.PathLike[str] | None = None,
    prepared: str | os.PathLike[str] | bool | None = None,
    engine: str = "duckdb",
    renew: bool = False,
    progress: Callable[[float], None] | None = None,
    token: str | None = None,
    insecure: bool = False,
    patience: float | None = None,
    keys: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
    new_people: bool = False,
    basic_share: Number | None = None,
    key_share: Number | None = None,
) -> Database | Client:
    """Open private data with its public facts, protected unit and budget.

    Args:
        data: a .parquet, .csv, .csv.gz or .duckdb file; several as a list of paths, a pattern or a folder; a pandas,
            polars, pyarrow or Spark table, a dataset, lazy frame or relation; the postgresql:// address of a database;
            a table of Spark by its address, "spark://host:port/table"; {name: such} for several tables; or the address
            of a remote curator.
        table: its name in questions, and inside a .duckdb file of several or a database; default the stem of the
            file or folder, or "data".
        columns: public facts, never read off the data: {"age": sulq.Int(0, 120), ...}; {table: such} for several.
        unit: whom an answer hides; default: the row, add_remove. With rows="auto" a part of the budget (a twentieth)
            buys a noisy histogram of rows per person when the ledger is begun, and the number of rows is chosen from it
            for ever (`facts.choice`; docs/guide/declare.md).
        budget: the total that may ever be lost: Epsilon, Rho, EpsilonDelta or SubLinear.
        size: the owner's declared public size, if n may be known; {table: size} for several. Under replace_one, where
            each row is a person, means are sums divided by it: it must be the number of rows.
        synthetic: True for made-up data; written into the ledger for ever.
        ledger: its path, or postgresql://HOST/DATABASE?ledger=NAME; default the one there that covers the data, else
            a new one: beside a data file, in memory for a frame, for a table in PostgreSQL in the same database, as
            sulq_SCHEMA_TABLE.
        anchor: a file on another volume that tells an old copy of the ledger from the newest (docs/operate/ledger.md).
        prepared: where the prepared copy lies; default beside the ledger (in PostgreSQL: the data), False for none.
        engine: "duckdb" or "memory"; tables in PostgreSQL and on Spark are asked there ("postgres", "spark").
        renew: accept a source that changed since it was registered.
        progress: called with the part done (0 to 1) while the prepared copy is built.
        token: for a remote curator, whose address stands in place of the data: "https://host:port/dataset".
        insecure: send the token over http:// to another machine all the same.
        patience: for how many seconds a call to a remote curator is tried again while it restarts, is not ready or
            asks for a pause (60); 0: never.
        keys: of several tables, the column of each that differs from row to row: {"people": "pid"}. This is checked
            over all rows, and a duplicate is the owner's to hear of: SetupError, before anything is spent.
        public: of several tables, those that need no protection; how many rows they have is public too.
        persons: of several tables, those that name the person otherwise than the unit: {"orders": "customer"}.
        references: of several tables, the columns that name a row of another private table by its key, always one of
            the same person's: {"lines": {"order": "orders"}}. This is checked as keys are; joined so, tables need no
            mention of the person.
        graph: of one table whose rows are edges, the columns of both ends, declared by the same list of all vertices
            or as the same Int, and of the weight, if there is one, within [0, 1]: ("u", "v", "weight"). Then
            `db.graph` is there, and an edge to a number out of bounds is none.
        estimators: of one table, functions that analysts may choose by name: {"name": "package:function"}, or
            {"name": ("package:function", sulq.Stated(...))} for one whose sensitivity you state (Stated), certify
            (Certificate), which scores candidates (Utility), or which tells the tables that have a property (Property).
            Each must be a function of its argument alone, which is tried when the data is opened. They rest on your
            word, run in your process, and are written down in the ledger and shown as declared.
        new_people: with `ledger=` naming a new one: begin it although another ledger covers this data, as the people
            are others by your word, which is written down. Without it such a ledger is refused (`covered-source`).
        basic_share: of an EpsilonDelta budget, the part of delta for asks that are added one by one, from 0 (none of
            them may have a delta) to 0.9; a twentieth by default. Fixed with the ledger (docs/guide/budget.md).
        key_share: likewise the part of delta for open keys, groups that are found in the data, from 0 (no such group is
            shown) to 0.9; by default a tenth where a table has open keys, else 0. `basic_share` is of the rest.
    """
    for name, told in {"synthetic": synthetic, "renew": renew, "new_people": new_people, "insecure": insecure}.items():
        if not isinstance(told, bool):
            raise SetupError("bad-declaration", f"{name} is True or False.")
    if is_curator(data):
        declared = (table, columns, unit, budget, size, ledger, anchor, prepared, progress, keys, public, persons)
        changed = synthetic or renew or new_people or engine != "duckdb"
        more = (references, graph, estimators, basic_share, key_share)
        declares = changed or any(item is not None for item in (*declared, *more))
        return _remote(str(data), token, insecure=insecure, patience=patience, told=declares)
    if token is not None or insecure or patience is not None:
        raise SetupError("bad-declaration", "token, insecure and patience are for a remote curator.")
    whole = Unit() if unit is None else unit
    _check(whole, budget)
    basic, keyed = delta_share_of("basic_share", basic_share, budget), delta_share_of("key_share", key_share, budget)
    _check_paths(ledger=ledger, anchor=anchor, prepared=prepared)
    parts = {"keys": keys, "public": public, "persons": persons, "references": references}
    tables = owned_tables(data, columns, whole, size, table=table, graph=graph, estimators=estimators, parts=parts)
    check_auto(whole, budget, sum(Tables(whole, (item.facts,)).kept_of(item.facts) is not None for item in tables))
    if new_people and ledger is None:
        raise SetupError("bad-declaration", "new_people=True begins a ledger of its own: name it, ledger=...")
    from sulq.api.database import Database, ledger_place, sources_of  # loads the engines

    sources = [item.source for item in tables]
    private = private_sources(tables)
    covered = sources_of(private)
    named = None if ledger is None else str(ledger) if is_address(ledger) else Path(ledger)
    place = ledger_place(covered, named, lambda: begun(private), private, new_people=new_people)
    _check_ledger(budget, place, sources)
    warn_of_shared_database(place, sources, anchor)
    return Database(
        tables,
        unit=whole,
        budget=budget,
        synthetic=synthetic,
        ledger=place,
        anchor=None if anchor is None else Path(anchor),
        prepared=prepared_copy(sources, place, prepared, found=ledger is None),
        engine=engine,
        renew=renew,
        progress=progress,
        covered=covered,
        new_people=new_people,
        basic_share=basic,
        key_share=keyed,
    )


def connect_async(data: object, *, concurrency: int = 100, **declared: Any) -> AsyncClient:  # noqa: ANN401 - of `connect`
    """As `connect`, for asks that are awaited: `async with sulq.connect_async("https://host/data", token=...) as db:`.

    Args:
        data: the address of a remote curator, or anything else that `connect` opens.
        concurrency: how many asks may be under way at once; others wait for them.
        declared: the other arguments of `connect`, which is called when the client is entered or awaited.
    """
    from sulq.api.asynchronous import AsyncClient  # loads asyncio

    return AsyncClient(lambda: connect(data, **declared), concurrency=concurrency)


def check(
    data: object,
    *,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    table: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    keys: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    graph: tuple[str, ...] | None = None,
) -> RowCheck:
    """Count how declarations fit the rows of files or frames; for their owner alone, and not to be published.

    The arguments are those of `connect`. Beside the ledger, or where it will lie, a note is left that you looked: what
    is declared otherwise afterwards is shown to analysts as declared after looking. A frame whose ledger is in memory
    leaves none, as nothing of it stays.

    Raises:
        SetupError: the data is not there, not as declared, or lies in a database, on Spark or behind a curator.
    """
    if is_curator(data):
        raise SetupError("bad-declaration", "Rows are checked where they lie; a URL names a curator elsewhere.")
    whole = Unit() if unit is None else unit
    _check(whole, None)
    _check_paths(ledger=ledger)
    parts = {"keys": keys, "public": public, "persons": persons, "references": references}
    tables = owned_tables(data, columns, whole, None, table=table, graph=graph, estimators=None, parts=parts)
    from sulq.api.owner import check_tables  # loads the engines

    private = private_sources(tables)
    named = None if ledger is None else str(ledger) if is_address(ledger) else Path(ledger)
    return check_tables(tables, whole, private, named, lambda: begun(private))


def _remote(url: str, token: str | None, *, insecure: bool, patience: float | None, told: bool) -> Client:
    """A client of the curator at a URL; `told`: whether the caller declared anything else."""
    scheme = url.split("://", 1)[0].lower()
    if scheme not in ("http", "https"):
        raise SetupError("engine-not-available", f"Connecting to {scheme}:// is not in this version.")
    if told:
        raise SetupError("bad-declaration", "A remote curator has its own declarations; give token= alone.")
    if token is None:
        raise SetupError(
            "bad-declaration",
            "A remote curator is asked with a token: token=...",
            "The owner gives it out: `sulq analyst add NAME`, on the server.",
        )
    from sulq.api.client import Client  # loads httpx
    from sulq.client.http import PATIENCE_SECONDS

    return Client(url, token, insecure=insecure, patience=PATIENCE_SECONDS if patience is None else patience)


def _check(unit: object, budget: object) -> None:
    if not isinstance(unit, Unit):
        raise SetupError("bad-declaration", "unit must be a sulq.Unit.")
    if budget is not None and not isinstance(budget, (Epsilon, Rho, EpsilonDelta, SubLinear)):
        raise SetupError("bad-declaration", "budget must be Epsilon, Rho, EpsilonDelta or SubLinear.")


def _check_paths(**told: object) -> None:
    """Refuse what is no path of a file, and no way to leave one out."""
    for name, path in told.items():
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
        if isinstance(text, str) and "\x00" not in text and is_text(text):
            continue
        if text is not None and not (name == "prepared" and isinstance(text, bool)):
            raise SetupError("bad-declaration", f"{name} is the path of a file.")


def _check_ledger(budget: Budget | None, ledger: str | Path | None, sources: Sequence[object]) -> None:
    """Refuse a ledger that would have no place, and a new one without a budget."""
    if ledger is None and any(in_spark(source) for source in sources):
        raise SetupError("bad-declaration", "A table of Spark has no place beside it for a ledger: ledger=...")
    if budget is None and not isinstance(ledger, str) and (ledger is None or not ledger.exists()):
        raise SetupError("bad-declaration", "A new person space needs a budget: budget=sulq.Epsilon(1), say.")
