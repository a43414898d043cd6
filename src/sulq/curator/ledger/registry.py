"""What a ledger is told of the data it protects: declarations and the name of a file or table, nothing of the rows.

Beside a ledger stands a note that its owner looked at exact counts over the rows, and at which declarations:

    survey.ledger    what was registered
    survey.looked    the declarations that `sulq check` was run on first, each as a digest; nothing of the rows

What is registered later and was not declared so before the first look is recorded in the ledger as declared after
looking (SR28), for ever. It is a record and no proof: an owner has the rows and can look at them by other means.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sulq.answers import wire
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.turns import sync_directory
from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.rows_choice import AutoUnit

MAX_LISTED_VALUES: Final = 2**16  # so many values are not all listed where they are keys
SUFFIX: Final = ".looked"
UNIT: Final = "the unit"


def open_keys(schemas: Iterable[Schema]) -> bool:
    """Whether a column's values are too many to be listed: as keys they are found in the data, for a delta (SR14)."""
    columns = [column for schema in schemas for _, column in schema.columns]
    return any(isinstance(c, Text) or (isinstance(c, Int) and c.high - c.low >= MAX_LISTED_VALUES) for c in columns)


def register(ledger: Ledger, facts: TableFacts, *, source: str, size: int | None, renew: bool) -> None:
    """Write down what the ledger protects now; a source that changed underneath stops the owner (SR12)."""
    name = facts.schema.table
    known = ledger.registered(name)
    told, source = source, ledger.kept_source(source)
    if known is not None and known.source == told:  # as version 0.1.0 registered it: the same data
        source = told
    if known is not None and not renew and "frame" not in (source, known.source) and known.source != source:
        raise SetupError("source-changed", f"The data of {name!r} is not what was registered.")
    # A frame, or a table known by its name, may hold other rows under it: only its owner can say that they are new.
    anew = renew and (told == "frame" or told.startswith("spark "))
    links = (facts.references,) if facts.references else ()
    # What rests on the owner's word alone is written down like any declaration, functions in words besides (SR5).
    own = (facts.references, facts.graph, facts.estimators) if facts.graph or facts.estimators else links
    shape = (facts.schema, facts.key, facts.public, facts.person, *own)
    declared = wire.digest(facts.schema if facts.plain else shape)
    ledger.register(
        name,
        declarations=declared,
        size=size,
        source=source,
        public=facts.public,
        estimators=facts.estimators,
        looked=declared_after(ledger, facts, size),
        anew=anew,
    )


def note_look(
    ledger: Path, tables: Sequence[TableFacts], unit: Unit, sizes: Mapping[str, int | None] | None = None
) -> None:
    """Note, durably and before anything is counted, that its owner looks; what was noted before stays.

    A table that an earlier look does not name has nothing declared before it: it may be one of that look's, renamed.

    Args:
        ledger: beside which the note is left.
        tables: what is declared of them.
        unit: whom the ledger protects.
        sizes: the sizes that are declared already; rows are counted, so that a later one may be such a count.

    Raises:
        SetupError: `bad-declaration`: it cannot be written, or what is there is no such note.
    """
    noted, rows = _read(ledger), "auto" if isinstance(unit, AutoUnit) else unit.rows
    declared = {table.schema.table: _digests(table, (sizes or {}).get(table.schema.table)) for table in tables}
    found = (
        {UNIT: wire.digest((unit.column, rows, unit.neighbors, unit.fold))}
        | ({name: {} for name in declared} if noted else declared)
        | noted
    )
    place = _beside(ledger)
    draft = place.with_name(f".{place.name}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(found, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
        sync_directory(place.parent)
    except OSError:
        raise SetupError(
            "bad-declaration", f"The note {place.name!r}, that you looked, cannot be written beside the ledger."
        ) from None


def declared_after(ledger: Ledger, table: TableFacts, size: int | None) -> tuple[str, ...]:
    """What of a table's declarations was not said so when its owner first looked; nothing where no one did."""
    noted = _read(ledger.path) if isinstance(ledger.path, Path) else {}
    if not noted:
        return ()
    before, now = noted.get(table.schema.table, {}), _digests(table, size)
    changed = [name for name in now if not isinstance(before, dict) or before.get(name) != now[name]]
    gone = [f"{name} left out" for name in before if name not in now] if isinstance(before, dict) else []
    return (*changed, *gone, *([UNIT] if noted.get(UNIT) != wire.digest(ledger.told_unit) else []))


def _digests(table: TableFacts, size: int | None) -> dict[str, str]:
    own = {f"column {name}": wire.digest(column) for name, column in table.schema.columns}
    more = {"size": size, "graph": table.graph, "estimators": table.estimators or None}
    own |= {name: wire.digest(value) for name, value in more.items() if value is not None}
    return own | {"key, person and references": wire.digest((table.key, table.public, table.person, table.references))}


def _beside(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name.removesuffix('.ledger')}{SUFFIX}")


def _read(ledger: Path) -> dict[str, object]:
    place = _beside(ledger)
    try:
        found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
        if not isinstance(found, dict):
            raise ValueError("no note")
    except (OSError, ValueError):
        why = f"The note {place.name!r}, that its owner looked at the rows, cannot be read."
        raise SetupError("bad-declaration", why, "Restore it from a copy.") from None
    return found
