"""A dataset by the name a command was given: a data file with its NAME.sulq.toml, or a name in sulq.toml."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sulq.cli.config import Dataset, find
from sulq.connect import connect
from sulq.database import Database
from sulq.errors import SetupError


def declared(dataset: str, config: Path | None) -> Dataset:
    """The owner's declarations of a dataset; no data file is opened."""
    found = find(dataset, config)
    if isinstance(found.data, str):
        raise SetupError("engine-not-available", "Datasets behind a URL are not in this version.")
    return found


def ledger_of(found: Dataset) -> Path:
    """Where a dataset's ledger lies."""
    if found.ledger is not None:
        return found.ledger
    data = Path(found.data)
    return data.with_name(f"{data.name.removesuffix('.gz').rsplit('.', 1)[0]}.ledger")


def opened(found: Dataset, *, renew: bool = False, progress: Callable[[float], None] | None = None) -> Database:
    """A dataset, opened as its file declares it."""
    parts = found.tables
    if parts:
        return connect(
            {name: part.data for name, part in parts.items()},
            columns={name: part.columns for name, part in parts.items()},
            keys={name: part.key for name, part in parts.items() if part.key is not None},
            public=[name for name, part in parts.items() if part.public],
            persons={name: part.person for name, part in parts.items() if part.person is not None},
            references={name: part.references for name, part in parts.items() if part.references},
            unit=found.unit,
            budget=found.budget,
            size={name: part.size for name, part in parts.items() if part.size is not None} or None,
            synthetic=found.synthetic,
            ledger=found.ledger,
            prepared=found.prepared,
            renew=renew,
            progress=progress,
        )
    return connect(
        found.data,
        table=found.table,
        columns=found.columns,
        unit=found.unit,
        budget=found.budget,
        size=found.size,
        synthetic=found.synthetic,
        ledger=found.ledger,
        prepared=found.prepared,
        renew=renew,
        progress=progress,
    )
