"""A dataset by the name a command was given: a data file with its NAME.sulq.toml, a name in sulq.toml, or a URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sulq.addresses import begun, copy_of
from sulq.api.connect import connect
from sulq.api.declarations import in_spark, is_curator
from sulq.cli.config import DatasetConfig, covered, find
from sulq.errors import AccessDenied, SetupError

if TYPE_CHECKING:
    from sulq.api.client import Client
    from sulq.api.database import Database

TOKEN: Final = "SULQ_TOKEN"  # noqa: S105 - the variable's name


def address(dataset: str, config: Path | None) -> str | None:
    """The URL of a curator, where a command names one; else None."""
    data = dataset if "://" in dataset else find(dataset, config).data
    return str(data) if is_curator(data) or data is dataset else None


def remote(url: str) -> Client:
    """A curator elsewhere, with the token of the environment; it stands in no command line or history."""
    token = os.environ.get(TOKEN, "")
    if not token:
        raise AccessDenied("unauthorized", f"A remote curator is asked with a token in ${TOKEN}.")
    return connect(url, token=token)


def asked(dataset: str, config: Path | None) -> Database | Client:
    """A dataset to be asked, here or elsewhere."""
    url = address(dataset, config)
    return opened(declared(dataset, config)) if url is None else remote(url)


def declared(dataset: str, config: Path | None) -> DatasetConfig:
    """The owner's declarations of a dataset; no data file is opened."""
    found = None if "://" in dataset else find(dataset, config)
    if found is None or is_curator(found.data):
        raise SetupError("bad-config", "This is done where the data is; a URL names a curator elsewhere.")
    return found


def ledger_of(found: DatasetConfig) -> Path | str:
    """Where a dataset's ledger lies, a file or an address: as told, the one that covers its data, or a new one's."""
    if found.ledger is not None:
        return found.ledger
    if in_spark(found.data):
        raise SetupError("bad-config", f"The data set {found.name!r} is a table of Spark: name its ledger.")
    return ledger_for(found) or ""


def ledger_for(found: DatasetConfig, *, new_people: bool = False) -> Path | str | None:
    """The same, refused where another ledger covers the data (T98)."""
    from sulq.curator.ledger.opening import ledger_place, sources_of

    tables = [(part.data, name) for name, part in found.tables.items() if not part.public]
    tables = tables or [(found.data, found.table)]
    private: list[tuple[object, str]] = [
        (each.resolve() if isinstance(each, Path) else each, name) for data, name in tables for each in covered(data)
    ]
    if any(isinstance(data, Path) and not data.exists() for data, _ in private):  # whoever opens it will say so
        return found.ledger or begun(private)
    return ledger_place(sources_of(private), found.ledger, lambda: begun(private), private, new_people=new_people)


def opened(
    found: DatasetConfig,
    *,
    renew: bool = False,
    new_people: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Database:
    """A dataset, opened as its file declares it; with the prepared copy that a server would use."""
    ledger = ledger_of(found)
    prepared: Path | bool | None = found.prepared
    first = found.files[0]
    if prepared is None and isinstance(first, Path):  # elsewhere the copy lies with the data
        prepared = copy_of(first if isinstance(ledger, str) else ledger, found.name)
    return connect(
        **found.words(),
        ledger=found.ledger,
        prepared=prepared,
        renew=renew,
        new_people=new_people,
        progress=progress,
    )
