"""CSV files by RFC 4180, and nothing else: no record's bytes may change how another record is read.

`check` reads a whole file before any row of it is used. It accepts only files that have one
reading, so that every parser of RFC 4180 finds the same records: DuckDB's, Python's and any other.

Grammar: fields are separated by commas, records end all in LF or all in CRLF (the last may end with the file), each
record has as many fields as the first, which names the columns, and none is blank: where there is one column, a
missing cell is written "". A field that begins with a quote ends with one;
between them commas, line breaks and CRs are text and a quote is written twice. Elsewhere quotes and CRs are
malformed, and so are a NUL, bytes that are no UTF-8 and a record longer than MAX_RECORD_BYTES anywhere.
A byte order mark may come first. DuckDB's reader finds how lines end within the first record, and after a byte order
mark takes no quote for an opening one: so no name holds a line break, nor the first one after a mark a comma or quote.

Privacy: trusted. What is malformed stops the owner at `connect`; no analyst is told a line.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sulq.curator.engines.grammar import Cell
from sulq.errors import SetupError
from sulq.terms.kinds import Integers

Octets = npt.NDArray[np.uint8]

MAX_RECORD_BYTES: Final = 2_000_000  # DuckDB's reader takes lines of 2 MiB
BLOCK_BYTES: Final = 1 << 22
GZIP_BYTES: Final = 1 << 16  # at most 1,032 times as many come out
_MARK: Final = b"\xef\xbb\xbf"
_LF, _CR, _QUOTE, _COMMA = b'\n\r",'
_TEXT: Final = bytes(byte for byte in range(256) if byte not in (_LF, _QUOTE, _COMMA))
_BEFORE_FIELD: Final = np.isin(np.arange(256), (_COMMA, _LF, _QUOTE))  # before a quote that opens
_AFTER_FIELD: Final = np.isin(np.arange(256), (_COMMA, _LF, _CR, _QUOTE))  # after one that closes
_ESCAPES: Final = 'Export it with quotes written twice inside quotes (""), not with a backslash before them.'
_LINES: Final = "Export all lines with LF, or all with CRLF."
_FIELDS: Final = "Export it with quotes around every text that holds a comma, a quote or a line break."
_NUMBER: Final = f"Export every line with a field for each name of the first. {_FIELDS}"
_TRAILING: Final = "Export it without a comma at the end of lines."
_BLANK: Final = 'Export it without blank lines, a missing cell of a file with one column as "".'
_SPACES: Final = "Export it without spaces between a quote and a comma."
_MARKED: Final = re.compile(rb'"[^",]*"[,\r\n]|[^"]')


def check(path: Path) -> int:
    """Refuse a file of which any record is malformed; return the number of its records without the header.

    Raises:
        SetupError: `malformed-csv`, with the line and what to export otherwise; `unreadable-data`: it has no end.
    """
    checker = _Checker(path.name)
    failed = False
    try:
        rest = b""
        for block in _blocks(path):
            rest = checker.whole(rest + block, last=False)
        checker.whole(rest, last=True)
    except (OSError, EOFError, zlib.error):
        failed = True
    if failed:
        _unreadable(path)
    return max(checker.records - 1, 0)


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file; of a gzipped one, those in its members. Nothing may follow them: DuckDB reads no padding."""
    with path.open("rb") as file:
        if path.suffix.lower() != ".gz":
            yield from iter(lambda: file.read(BLOCK_BYTES), b"")
            return
        member, begun = zlib.decompressobj(zlib.MAX_WBITS | 16), True
        while data := file.read(GZIP_BYTES):
            while data:
                begun = True
                yield member.decompress(data)
                data = member.unused_data
                if member.eof:
                    member, begun = zlib.decompressobj(zlib.MAX_WBITS | 16), False
        if begun:
            raise EOFError


class _Checker:
    """Checks blocks of records one after the other: where they begin in the file, and how many fields they have."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 1
        self._width = 0
        self._crlf: bool | None = None  # how the first record ends
        self._marked = False  # whether a byte order mark comes first
        self.records = 0

    def whole(self, data: bytes, *, last: bool) -> bytes:
        """Check the whole records in `data`, which begins with one; return the rest, the beginning of the next."""
        if not self.records and not self._marked and data.startswith(_MARK):
            self._marked, data = True, data.removeprefix(_MARK)
        if last and data and not data.endswith(b"\n"):
            if data.endswith(b"\r"):
                self._bare(data, len(data) - 1)
            data += b"\r\n" if self._crlf else b"\n"
        octets = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(octets == _QUOTE) if b'"' in data else np.empty(0, np.int64)
        ends = np.flatnonzero(octets == _LF)
        ends = ends[_outside(quotes, ends)] if len(quotes) else ends
        self._lengths(data, ends, last=last)
        if not len(ends):
            return data
        records, rest = data[: ends[-1] + 1], data[ends[-1] + 1 :]
        octets, quotes = octets[: len(records)], quotes[: np.searchsorted(quotes, len(records))]
        self._quotes(records, octets, quotes)
        self._line_ends(records, octets, quotes, ends)
        self._text(records)
        if not self.records:
            self._names(records[: ends[0] + 1])
        self._fields(records, ends)
        self.records += len(ends)
        self._line += records.count(b"\n")
        return rest

    def _lengths(self, data: bytes, ends: Integers, *, last: bool) -> None:
        starts = np.concatenate([[0], ends + 1])
        long = np.diff(np.append(starts, len(data))) > MAX_RECORD_BYTES
        if long.any():
            why = f"begins a record longer than {MAX_RECORD_BYTES:,} bytes, perhaps with a quote that never closes"
            self._refuse(data, int(starts[np.argmax(long)]), why, _ESCAPES)
        if last and starts[-1] < len(data):
            self._refuse(data, int(starts[-1]), "begins a record with a quote that never closes", _ESCAPES)

    def _quotes(self, data: bytes, octets: Octets, quotes: Integers) -> None:
        """Quotes come in pairs: each opens a field or follows a closing one, each closes one or a next follows it."""
        opening, closing = quotes[0::2], quotes[1::2]
        stray = opening[~_BEFORE_FIELD[octets[opening - 1]]]  # octets[-1] is an LF, as before any other record
        if len(stray):
            spaced = data[: stray[0]].rstrip(b" \t")[-1:] in (b"", b",", b"\n")
            remedy = _SPACES if spaced else _ESCAPES
            self._refuse(data, int(stray[0]), "has a quote inside a field that has none around it", remedy)
        after = closing[~_AFTER_FIELD[octets[closing + 1]]]
        if len(after):
            remedy = _SPACES if data[after[0] + 1] in b" \t" else _ESCAPES
            self._refuse(data, int(after[0]), "has text after a closing quote", remedy)

    def _line_ends(self, data: bytes, octets: Octets, quotes: Integers, ends: Integers) -> None:
        """Outside quotes a CR stands before an LF alone, before each or before none."""
        if data.count(b"\r") != data.count(b"\r\n"):
            returns = np.flatnonzero(octets == _CR)
            returns = returns[octets[returns + 1] != _LF]
            returns = returns[_outside(quotes, returns)]
            if len(returns):
                self._bare(data, int(returns[0]))
        crlf = octets[ends - 1] == _CR
        self._crlf = bool(crlf[0]) if self._crlf is None else self._crlf
        other = ends[crlf != self._crlf]
        if len(other):
            self._refuse(data, int(other[0]), "ends otherwise than the first", _LINES)

    def _text(self, data: bytes) -> None:
        nul = data.find(b"\0")
        if nul >= 0:
            self._refuse(data, nul, "has a NUL byte", "Export it as text in UTF-8 (not UTF-16), without NUL bytes.")
        wrong = -1
        try:
            _ = data.isascii() or data.decode()
        except UnicodeDecodeError as error:
            wrong = error.start
        if wrong >= 0:
            self._refuse(data, wrong, "has bytes that are no UTF-8", "Export it in UTF-8.")

    def _names(self, record: bytes) -> None:
        """The first record is one line, and after a byte order mark DuckDB finds the end of its first name."""
        if any(byte in record.removesuffix(b"\n").removesuffix(b"\r") for byte in b"\r\n"):
            self._refuse(record, 0, "names a column with a line break", "Name the columns on one line.")
        if self._marked and not _MARKED.match(record):
            why = "begins with a byte order mark and a name that holds a comma or a quote"
            self._refuse(record, 0, why, "Export it without a byte order mark, or rename that column.")

    def _fields(self, data: bytes, ends: Integers) -> None:
        """Outside quotes every record has the same number of commas; a record of one field is not blank."""
        marks = data.translate(None, _TEXT)
        if b'"' in marks:
            octets = np.frombuffer(marks, np.uint8)
            quotes = octets == _QUOTE
            inside = np.cumsum(quotes, dtype=np.uint8) & 1
            marks = octets[(inside == 0) & ~quotes].tobytes()
        self._width = self._width or marks.index(b"\n") + 1
        same = marks == (b"," * (self._width - 1) + b"\n") * len(ends)
        if self._width == 1 or not same:
            blank = next((start for start in _starts(ends)[:-1] if data.startswith((b"\n", b"\r\n"), start)), None)
            if blank is not None:
                self._refuse(data, blank, "is blank", _BLANK)
        if not same:
            widths = [len(commas) + 1 for commas in marks.split(b"\n")]
            place = next(i for i, width in enumerate(widths) if width != self._width)
            why = f"begins a record of {widths[place]} fields and not {self._width}, as the first has"
            trailing = data[: ends[place]].removesuffix(b"\r").endswith(b",") and widths[place] == self._width + 1
            self._refuse(data, _starts(ends)[place], why, _TRAILING if trailing else _NUMBER)

    def _bare(self, data: bytes, place: int) -> NoReturn:
        why = "has a carriage return (CR) that is no part of a line's end"
        self._refuse(data, place, why, f"{_LINES} {_FIELDS}")

    def _refuse(self, data: bytes, place: int, why: str, remedy: str) -> NoReturn:
        line = self._line + data.count(b"\n", 0, place)
        raise SetupError("malformed-csv", f"Line {line:,} of {self._name!r} {why}.", remedy)


def _starts(ends: Integers) -> list[int]:
    """Where records begin that end there, and where the rest begins."""
    return [0, *(ends + 1).tolist()]


def _outside(quotes: Integers, places: Integers) -> Integers:
    """Which places have an even number of quotes before them."""
    return cast("Integers", np.searchsorted(quotes, places) % 2 == 0)


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb"))


def _unreadable(path: Path) -> NoReturn:
    raise SetupError("unreadable-data", f"{path.name!r} cannot be read to its end.")


def header(path: Path) -> list[str]:
    """The names in the first record."""
    for record in _records(path):
        return record
    return []


def _records(path: Path) -> Iterator[list[str]]:
    """The records of a file, the header first."""
    csv.field_size_limit(sys.maxsize)
    try:
        with _opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="") as lines:
            yield from csv.reader(lines)
            return
    except (OSError, EOFError, zlib.error, csv.Error):
        pass
    _unreadable(path)


def table(path: Path, places: dict[str, int]) -> tuple[pa.Table, dict[str, Cell]]:
    """The needed columns of a checked file as text, one row a record; an empty cell is missing."""
    check(path)
    records = _records(path)
    next(records, None)
    taken: list[list[str | None]] = [[] for _ in places]
    for record in records:
        for cells, place in zip(taken, places.values(), strict=True):
            cells.append(record[place] or None)
    names = [f"s{i}" for i in range(len(taken))]
    found = pa.table([pa.array(cells, pa.large_string()) for cells in taken], names=names)
    return found, dict.fromkeys(places, "text")
