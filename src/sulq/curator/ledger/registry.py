"""What a ledger is told of the data it protects: declarations and the name of a file or table, nothing of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sulq.answers import wire
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import TableFacts

MAX_LISTED_VALUES: Final = 2**16  # so many values are not all listed where they are keys


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
        anew=anew,
    )
