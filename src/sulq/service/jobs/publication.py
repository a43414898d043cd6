"""What was published, a release or a selection, as every door shows it: a title, its price, tables, charts, files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, cast

import pyarrow as pa

from sulq.display.text_table import Cell, TextTable, cell
from sulq.forms.signature import Form, form_of
from sulq.release import RELEASES
from sulq.release.base import Chart, Release, ReleaseFiles, Written
from sulq.select import SELECTIONS
from sulq.select.selected import Selected

MAX_ROWS_SHOWN: Final = 1000  # rows of a table that are shown; the files have all of them
MAX_CHARTS: Final = 20
MAX_BARS: Final = 60  # of a chart
SELECTION: Final = "selection.json"
Found = Release | Selected
Publishing = Callable[..., Found]
ALL: Final[tuple[Publishing, ...]] = (*RELEASES, *SELECTIONS)


@dataclass(frozen=True)
class Published:
    """Something published, to be shown; its tables and charts are made once, however often they are."""

    found: Found

    @cached_property
    def _laid(self) -> ReleaseFiles:
        return ReleaseFiles.of(cast("Release", self.found))

    @property
    def title(self) -> str:
        """One line for people."""
        if isinstance(self.found, Release):
            return self.found.title()
        return f"{self.found.candidate}: the chosen one of {self.found.candidates:,}"

    @property
    def paid(self) -> str:
        """What it cost and whom it protects."""
        if isinstance(self.found, Release):
            return str(self.found.paid)
        entries = ", ".join(str(receipt.seq) for receipt in self.found.receipts)
        return (
            f"spent {self.found.spent}, protects {self.found.unit} ({self.found.guarantee}); "
            f"ledger entry {entries or 'none'}"
        )

    def description(self) -> dict[str, object]:
        """All that is said of it beside its tables, as plain JSON."""
        if not isinstance(self.found, Selected):
            return self._laid.description()
        told = self.found.to_json()
        names = ("spent", "unit", "guarantee", "receipts")
        return {"title": self.title, "paid": {name: told[name] for name in names}, "selection": told}

    def tables(self, most: int = MAX_ROWS_SHOWN) -> Iterator[TextTable]:
        """Its tables, of each the first rows; one after the other, as there may be many."""
        if not isinstance(self.found, Selected):
            tables = self._laid.tables.items()
            return (_table(name, table, most) for name, table in tables if table.num_columns)
        rows: tuple[tuple[Cell, ...], ...] = (
            ("chosen", cell(self.found.candidate)),
            ("candidates", self.found.candidates),
            (f"{self.found.said}, below the best one's by at most (at 95%)", self.found.within()),
        )
        return iter([TextTable("Summary", ("", "value"), rows)])

    def charts(self) -> list[Chart]:
        """Its pictures, with error bars; the longest are cut."""
        if isinstance(self.found, Selected):
            return []
        return [
            replace(one, names=one.names[:MAX_BARS], values=one.values[:MAX_BARS], error=one.error[:MAX_BARS])
            for one in self._laid.charts[:MAX_CHARTS]
        ]

    def save(self, place: Path, written: Written = "parquet") -> None:
        """Write it: a release into a folder, a selection into a file."""
        if isinstance(self.found, Selected):
            self.found.save(place)
        else:
            self._laid.save(place, written)

    def files(self, written: Written = "parquet") -> dict[str, bytes]:
        """What `save` writes, by name."""
        if not isinstance(self.found, Selected):
            return self._laid.files(written)
        text = json.dumps(self.found.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        return {SELECTION: f"{text}\n".encode()}

    def archive(self, written: Written = "parquet") -> bytes:
        """Its files as one archive; no disk is written to."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
            for name, held in self.files(written).items():
                opened.writestr(name, held)
        return packed.getvalue()


def form(publishing: Publishing) -> Form:
    """The form of a release or a selection."""
    return form_of(publishing, "selection" if publishing in SELECTIONS else "release")


def _table(name: str, table: pa.Table, most: int) -> TextTable:
    columns = [column.to_pylist() for column in table.slice(0, most).columns]
    rows = tuple(tuple(cell(value) for value in row) for row in zip(*columns, strict=True))
    return TextTable(name, tuple(table.column_names), rows, max(table.num_rows - most, 0))
