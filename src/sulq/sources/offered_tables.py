"""The tables that an owner's data holds, each with its columns' names and types: no row of any is read."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

from sulq.addresses import is_address
from sulq.data_files import Files, find_files
from sulq.errors import SetupError
from sulq.sources.column_guess import UNTYPED, suggested
from sulq.sources.engines import need
from sulq.sources.tables import Columns, list_tables

CATALOGUE: Final = "sulq.sources.postgres.catalogue"  # loaded where there is an address


class OfferedColumns(NamedTuple):
    """One table: its name, where it lies, its columns with their types, and whether that place holds others too."""

    name: str
    data: Path | Files | str
    columns: Columns
    inside: bool = False

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of column that each name and type suggests."""
        return {name: suggested(kind, name) for name, kind in self.columns}


def offered_tables(data: str) -> list[OfferedColumns]:
    """The tables of a file, a folder, a pattern or an address; parts with the same columns are one table."""
    if is_address(data):
        need("postgres")
        name, columns = cast("tuple[str, Columns]", importlib.import_module(CATALOGUE).listed(data))
        return [OfferedColumns(name, data, columns)]
    several = find_files(data)
    if several is None:
        path = Path(data).expanduser()
        found = list_tables(path)
        return [OfferedColumns(name, path, columns, path.suffix == ".duckdb") for name, columns in found]
    parts = {path: list_tables(path)[0] for path in several.paths}
    (first, *others) = [columns for _, columns in parts.values()]
    if all(other == first for other in others):
        columns = first + [(name, UNTYPED) for name in several.names]
        folder = several.folder or several.paths[0].parent
        return [OfferedColumns(folder.name if others else parts[several.paths[0]][0], several, columns)]
    if several.names:
        raise SetupError("unreadable-data", "Parts with other columns lie in one partitioned table.")
    return [OfferedColumns(name, path, columns) for path, (name, columns) in parts.items()]
