"""Which ledger data is under that an owner registers by a call: the one it was charged to before, or a new one.

A ledger goes by the data and not by the dataset's name: data that is taken away
and registered again, alone or with other tables, finds what was spent (T56).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from sulq.addresses.defaults import beside, copy_of
from sulq.curator.ledger.opening import covers_in
from sulq.curator.ledger.sources import Likeness, Source, covering
from sulq.errors import SetupError
from sulq.service.settings import DatasetSettings, Service, TableSettings


def rows_of(declared: DatasetSettings) -> list[str]:
    """The private tables of a dataset by where their rows lie; a file of several holds several."""
    return [_place(table) for table in declared.tables if not table.facts.public]


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
    known = {noted[_place(table)] for table in private if _place(table) in noted}
    known |= {str(new) for table in private if (new := _new(table, service)).exists()}
    known |= _covering([_file(table) for table in private if _file(table).exists()], service)
    if service.ledgers is not None:
        _moved(private, known, service)
    if len(known) > 1:
        raise SetupError(
            "bad-declaration",
            "Some of these tables have ledgers of their own already: no budget would hold for all of them.",
            "Register them as they were, each with its own budget.",
        )
    ledger = known.pop() if known else str(_new(private[0], service))
    first = _file(private[0])
    place = Path(ledger) if service.ledgers is None and "://" not in ledger else first  # no rows among the ledgers
    return replace(declared, ledger=ledger, prepared=copy_of(place, declared.name))


def _covering(files: list[Path], service: Service) -> set[str]:
    """The ledgers that cover these files by path or inode; what their bytes tell, a worker says later (T98)."""
    books = covers_in({file.parent for file in files} if service.ledgers is None else [service.ledgers])
    found = [covering(Source.file(file).unread(), books) for file in files]
    return {str(place) for each in found for place, likeness in each.items() if likeness is Likeness.SAME}


def _moved(private: list[TableSettings], known: set[str], service: Service) -> None:
    """Refuse to forget a ledger that lies beside the data, or one of which nobody here can say: the owner's to move."""
    for table in private:
        there, new = beside(_file(table)), _new(table, service)
        if not there.exists() and _file(table).exists():
            found = covering(Source.file(_file(table)).unread(), covers_in([_file(table).parent]))
            there = next((place for place in found if isinstance(place, Path)), there)
        if there.exists() and str(there) not in known:
            raise SetupError(
                "bad-declaration",
                f"There is a ledger beside {_file(table).name}; this server keeps ledgers in a folder of their own.",
                f"Stop the server and move {there.name} there as {new.name}, or declare the dataset in sulq.toml.",
            )


def _new(table: TableSettings, service: Service) -> Path:
    """Where a ledger is begun for a table's rows."""
    own = beside(_file(table))
    if service.ledgers is None or service.data_root is None:
        return own
    return service.ledgers.resolve() / quote(str(own.relative_to(service.data_root.resolve())), safe="")


def _file(table: TableSettings) -> Path:
    """A table's data file: calls register files alone, and an address stands in the server's own configuration."""
    if isinstance(table.data, str):
        raise SetupError("bad-declaration", "Tables in PostgreSQL are declared in the server's sulq.toml.")
    return table.data


def _place(table: TableSettings) -> str:
    return str(table.data) if table.inside is None else f"{table.data}#{table.inside}"
