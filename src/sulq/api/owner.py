"""What an owner does with data at the host, beside asking: seeing its columns, checking declarations against its rows.

Privacy: what stands here is exact, and the owner's alone. No Oracle leads to it, and no client has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sulq.api.declarations import OwnedTable
from sulq.api.row_check import RowCheck
from sulq.curator.ledger.opening import ledger_place, sources_of
from sulq.curator.ledger.registry import note_look
from sulq.errors import SetupError
from sulq.language.privacy import Unit
from sulq.language.rows_choice import AutoUnit
from sulq.sources.column_guess import person_of
from sulq.sources.duckdb.declared_fit import declared_fit
from sulq.sources.offered_tables import OfferedColumns, offered_tables
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given

__all__ = ["OfferedColumns", "check_tables", "offered_tables", "person_of"]


def check_tables(
    tables: Sequence[OwnedTable],
    unit: Unit,
    private: Sequence[tuple[object, str]],
    ledger: Path | str | None,
    begun: Callable[[], Path | str | None],
) -> RowCheck:
    """Count how declarations fit the rows; the note that their owner looks is left before a row is read.

    `private`: the sources that need protection, each with its table; `ledger`: the one that is named, if one is;
    `begun`: where one would be.
    """
    given = tuple(Given(Origin.of(item.source), item.facts, item.inside) for item in tables)
    dataset = Dataset(given, unit, b"")
    place = ledger if isinstance(ledger, str) else ledger_place(sources_of(private), ledger, begun, private)
    if isinstance(place, str):
        raise SetupError(
            "not-available",
            "The note that you looked is left beside a ledger's file; this ledger lies in a database.",
            "Count by the database's own means, and tell your analysts that you looked.",
        )
    if place is not None:
        note_look(place, [item.facts for item in tables], unit)
    return RowCheck.from_json({"tables": declared_fit(dataset, chosen=not isinstance(unit, AutoUnit))})
