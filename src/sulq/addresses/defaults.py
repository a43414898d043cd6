"""Where ledgers and prepared copies lie by default: named after the data, beside it or in its database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from sulq.addresses.postgres import TableAddress, foreign, is_address
from sulq.errors import SetupError


def begun(private: Sequence[tuple[object, str]]) -> Path | str | None:
    """Where the ledger of private tables is begun that none covers; None for frames, whose ledger lies in memory.

    Public tables have no say, nor has the order of others: a ledger is found again by what it covers.

    Raises:
        SetupError: several tables have no such place together.
    """
    files = [source for source, _ in private if isinstance(source, Path)]
    if len({file.parent for file in files}) > 1:
        raise SetupError(
            "bad-declaration",
            "Data files in several folders need a ledger named by you: one beside a file is not found from the others.",
            "Write ledger=PATH, every time, or put the files into one folder.",
        )
    if files:
        return beside(files[0])
    address = next((str(source) for source, _ in private if is_address(source)), None)
    return None if address is None else ledger_of(address, private[0][1] if len(private) == 1 else None)


def ledger_of(url: str, table: str | None) -> str:
    """Where the ledger of a table in PostgreSQL lies by default: in the same database, in a schema named after it.

    It goes by the schema and table inside the database, never by a name in questions: the same rows under
    another name have the same ledger, and no second budget.

    Raises:
        SetupError: there are several tables, or a schema could not be called so.
    """
    name = "" if table is None else "_".join(("sulq", *TableAddress.of(url).inside(table)))
    if not re.fullmatch(r"[a-z0-9_]{1,63}", name):
        raise SetupError(
            "bad-declaration",
            "Several tables, or one with such a name, need a ledger named by you.",
            'Write ledger="postgresql://HOST/DATABASE?ledger=NAME", or the path of a file.',
        )
    return ledger_at(url, name)


def ledger_at(url: str, name: str) -> str:
    """The address of a ledger in the database of a table's address."""
    return f"{url.partition('?')[0]}?{'&'.join([*foreign(url), f'ledger={name}'])}"


def beside(data: Path) -> Path:
    """Where a data file's ledger lies by default."""
    return data.with_name(f"{stem(data)}.ledger")


def copy_of(near: Path, dataset: str) -> Path:
    """Where a dataset's prepared copy lies by default: datasets of one ledger have each their own."""
    own, name = stem(near), quote(dataset, safe="")
    return near.with_name(f"{own}.prepared" if name == own else f"{own}.{name}.prepared")


def stem(path: Path) -> str:
    """A data file's name without its endings."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0] or "data"
