"""Persons whose rows are erased: known by a keyed digest of their ids, and left out wherever records are read.

Privacy: whether a record is left out follows from that record's person and the key alone, so other records, and which
rows of other persons are kept, stay as they were (SR2, SR25). The key is the ledger's own, which no call gives away;
whoever has the ledger's file can tell whether an id that they know was erased.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from sulq.sources.decode.files import literal
from sulq.sources.source import TableSource

TABLE: Final = "erased"  # the table of digests, while records are read
_WORD: Final = "erased"  # tells these digests from others under the same key


def digest_of(key: bytes, text: str) -> str:
    """What a person is known by once erased."""
    return hashlib.sha256(f"{key.hex()}\x1f{_WORD}\x1f{text}".encode()).hexdigest()


def digest_sql(key: bytes, text: str) -> str:
    """The same of a person's text in SQL."""
    return f"sha256(concat_ws(chr(31), {literal(key.hex())}, {literal(_WORD)}, {text}))"


def without_erased(source: TableSource, key: bytes) -> TableSource:
    """A table's records but those of erased persons; a record that names nobody stays, to be dropped as ever."""
    if source.person is None:
        return source
    _, cell, text = source.person

    def rest(relation: str) -> str:
        named = f"(SELECT *, {cell} AS a FROM {relation})"
        kept = f"({text}) IS NULL OR {digest_sql(key, text)} NOT IN (SELECT item FROM {TABLE})"
        return f"(SELECT * EXCLUDE (a) FROM {named} WHERE {kept})"

    plain = None if source.plain is None else rest(source.plain)
    return replace(source, relation=rest(source.relation), plain=plain, whole=source.relation)
