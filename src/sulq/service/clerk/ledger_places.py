"""Where the ledger of a dataset's rows lies: under whichever they were before, else where one is begun (T56, T98)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from sulq.addresses import beside, beside_all, copy_of, ledger_of, scattered
from sulq.curator.ledger.opening import check_reach, covers_in, covers_near, sources_of
from sulq.curator.ledger.sources import Likeness, covering
from sulq.data_files import Pattern
from sulq.errors import SetupError
from sulq.service.settings import DatasetSettings, Service, TableSettings, covered_of


def rows_of(declared: DatasetSettings) -> list[str]:
    """The private tables of a dataset by where their rows lie; a file of several holds several."""
    return [place for table in declared.tables if not table.facts.public for place in _places(table)]


def placed(declared: DatasetSettings, service: Service, noted: Mapping[str, str]) -> DatasetSettings:
    """The dataset under the ledger of its rows.

    Args:
        declared: as an owner declares it.
        service: where new ledgers are begun: beside the data, or in a folder of their own.
        noted: the ledgers that rows were ever registered under.

    Raises:
        SetupError: `bad-declaration`: its tables have several ledgers, or one that this server does not go to.
    """
    private = [table for table in declared.tables if not table.facts.public]
    files = [file for table in private for file in _files(table)]
    named = [item for table in private for item in covered_of(table.data)]
    named_paths = [item for item in named if isinstance(item, Path)]
    known = {noted[place] for table in private for place in _places(table) if place in noted}
    known |= {str(new) for own in _owns(private) if (new := _kept(own, service)).exists()}
    known |= _covering([item for item in named if isinstance(item, Pattern) or item.exists()], service)
    if service.ledgers is not None:
        _moved(private, known, service)
    if len(known) > 1:
        raise SetupError(
            "bad-declaration",
            "Some of these tables have ledgers of their own already: no budget would hold for all of them.",
            "Register them as they were, each with its own budget.",
        )
    if service.ledgers is None:
        check_reach(next((Path(place) for place in known if "://" not in place), None), named_paths)
    begun = [_begun(table, service) for table in private]
    ledger = known.pop() if known else str(_kept(begun[0], service))
    place = Path(ledger) if service.ledgers is None and "://" not in ledger else files[0]  # no rows among the ledgers
    return replace(declared, ledger=ledger, prepared=copy_of(place, declared.name))


def _covering(named: list[Path | Pattern], service: Service) -> set[str]:
    """The ledgers that cover these by path or inode; what their bytes tell, a worker says later (T98)."""
    paths = [item for item in named if isinstance(item, Path)]
    sources = [source.unread() for source in sources_of([(item, "") for item in named])]
    books = covers_near(paths, sources) if service.ledgers is None else covers_in([service.ledgers])
    found = [covering(source, books) for source in sources]
    return {str(place) for each in found for place, likeness in each.items() if likeness is Likeness.SAME}


def _moved(private: list[TableSettings], known: set[str], service: Service) -> None:
    """Refuse to forget a ledger that lies beside the data, or one of which nobody here can say: the owner's to move."""
    files = [file for table in private for file in _files(table)]
    present = [file for file in files if file.exists()]
    books = covers_near(present, [source.unread() for source in sources_of([(file, "") for file in present])])
    for own, file in _owns(private).items():
        there = own
        if not there.exists() and file.exists():
            found = covering(sources_of([(file, "")])[0].unread(), books)
            there = next((place for place in found if isinstance(place, Path)), there)
        if there.exists() and str(there) not in known:
            raise SetupError(
                "bad-declaration",
                f"There is a ledger beside {file.name}; this server keeps ledgers in a folder of their own.",
                f"Stop the server and move {there.name} there as {_kept(own, service).name}, or declare the dataset "
                "in sulq.toml.",
            )


def _owns(private: list[TableSettings]) -> dict[Path, Path]:
    """Where a ledger of any of these files alone lies by default, or of a whole that they are parts of; and a file."""
    found = {beside(file): file for table in private for file in _files(table)}
    for table in private:
        with contextlib.suppress(SetupError):  # several folders have no such place
            found.setdefault(beside_all(_paths(table)), _paths(table)[0])
    return found


def _begun(table: TableSettings, service: Service) -> Path:
    """Beside which a ledger is begun for a table's rows; in a folder of ledgers it is found from every part."""
    alone = beside(_files(table)[0])
    moving = any(item.scattered for item in covered_of(table.data) if isinstance(item, Pattern))
    if service.ledgers is not None or (len(_paths(table)) == 1 and not moving):
        return alone
    try:
        if moving:
            raise scattered()
        found = beside_all(_paths(table))
    except SetupError as error:
        remedy = "Declare the dataset in sulq.toml and name its ledger, or put the files into one folder."
        raise SetupError(error.code, error.message, remedy) from None
    inside = service.data_root is None or found.is_relative_to(service.data_root.resolve())
    return found if inside else alone


def _kept(own: Path, service: Service) -> Path:
    """Where a ledger lies whose place would be beside the data."""
    if service.ledgers is None or service.data_root is None:
        return own
    root = service.data_root.resolve()
    named = own.relative_to(root) if own.is_relative_to(root) else own  # of all that lies there as one table
    return service.ledgers.resolve() / quote(str(named), safe="")


def _files(table: TableSettings) -> tuple[Path, ...]:
    """A table's data files: calls register files alone, and an address stands in the server's own configuration."""
    if isinstance(table.data, str):
        raise SetupError("bad-declaration", "Tables in PostgreSQL are declared in the server's sulq.toml.")
    return table.files


def _paths(table: TableSettings) -> list[Path]:
    """Its data files, and the folders that they were named by."""
    return [item for item in covered_of(table.data) if isinstance(item, Path)]


def _places(table: TableSettings) -> list[str]:
    """Where a table's rows lie: each part by itself, as it may be registered alone too, and what names them all."""
    named = covered_of(table.data)
    places = [item.told if isinstance(item, Pattern) else str(item) for item in named] or [str(table.data)]
    return places if table.inside is None else [f"{place}#{table.inside}" for place in places]


def beside_tables(tables: tuple[TableSettings, ...]) -> str:
    """Where the ledger lies by default: beside the first data file, or in the database."""
    first = tables[0]
    if isinstance(first.data, str):
        return ledger_of(first.data, first.facts.schema.table if len(tables) == 1 else None)
    try:
        return str(beside_all(_paths(first)))
    except SetupError:  # of several folders; whoever places the ledger says what is to be done
        return str(beside(first.files[0]))
