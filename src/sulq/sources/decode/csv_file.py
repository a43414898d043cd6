"""CSV files by RFC 4180, and nothing else: no record's bytes may change how another record is read.

`check` reads a whole file before any row of it is used. It accepts only files that have one reading, so that every
parser of RFC 4180 finds the same records: DuckDB's, Python's and any other.

Grammar: fields are separated by commas, records end all in LF or all in CRLF (the last may end with the file), each
record has as many fields as the first, which names the columns, and none is blank: where there is one column, a
missing cell is written "". A field that begins with a quote ends with one; between them commas, line breaks and CRs
are text and a quote is written twice. Elsewhere quotes and CRs are malformed, and so are a NUL, bytes that are no
UTF-8 and a record longer than MAX_RECORD_BYTES anywhere.
A byte order mark may come first. DuckDB's reader finds how lines end within the first record, and after a byte order
mark takes no quote for an opening one: so no name holds a line break, nor the first one after a mark a comma or quote.

Privacy: trusted. What is malformed stops the owner at `connect`; no analyst is told a line.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import SetupError
from sulq.kernel.private import Integers

MAX_RECORD_BYTES: Final = 2_000_000  # DuckDB's reader takes lines of 2 MiB
BLOCK_BYTES: Final = 1 << 18
GZIP_BYTES: Final = 1 << 16  # at most 1,032 times as many come out
_MARK: Final = b"\xef\xbb\xbf"
_LF, _CR, _QUOTE, _COMMA = b'\n\r",'
_TEXT: Final = bytes(byte for byte in range(256) if byte not in (_LF, _QUOTE, _COMMA))
_BEFORE_FIELD: Final = np.isin(np.arange(256), (_COMMA, _LF, _QUOTE))  # before a quote that opens
_AFTER_FIELD: Final = np.isin(np.arange(256), (_COMMA, _LF, _CR, _QUOTE))  # after one that closes
_QUOTES: Final = 'Export quotes in quotes written twice (""), not after a backslash, and without spaces around fields.'
_LINES: Final = "Export all lines with LF, or all with CRLF, with quotes around every text that holds a line break."
_FIELDS: Final = "Export a field for each name, quotes around all texts with commas, and no comma at the end of lines."
_BLANK: Final = 'Export it without blank lines, a missing cell of a file with one column as "".'
_BARE: Final = "has a carriage return (CR) that is no part of a line's end"
_MARKED: Final = re.compile(rb'"[^",]*"[,\r\n]|[^"]')


def check(path: Path) -> tuple[int, bool]:
    """The number of a file's records without the header; refuses one of which any record is malformed.

    Whether every LF ends a record, whatever comes before. The owner is told the line and what to export otherwise.
    """
    checker, rest = _Checker(path.name), b""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        for block in _blocks(path):
            rest = checker.whole(rest + block, last=False)
        checker.whole(rest, last=True)
        return max(checker.records - 1, 0), checker.plain
    raise SetupError("unreadable-data", f"{path.name!r} cannot be read to its end.")


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
        self.plain = True  # neither a quote, nor a CR, nor a byte order mark was met

    def whole(self, data: bytes, *, last: bool) -> bytes:
        """Check the whole records in `data`, which begins with one; return the rest, the beginning of the next."""
        if not self.records and not self._marked and data.startswith(_MARK):
            self._marked, data = True, data.removeprefix(_MARK)
        if last and data and not data.endswith(b"\n"):
            self._none(data, [len(data) - 1] if data.endswith(b"\r") else [], _BARE, _LINES)
            data += b"\r\n" if self._crlf else b"\n"
        self.plain = self.plain and not self._marked and b'"' not in data and b"\r" not in data
        if self._alike(data[: (cut := data.rfind(b"\n") + 1)]):
            return data[cut:]
        octets = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(octets == _QUOTE) if b'"' in data else np.empty(0, np.int64)
        ends = np.flatnonzero(octets == _LF)
        ends = ends[_outside(quotes, ends)] if len(quotes) else ends
        starts = np.concatenate([[0], ends + 1])  # the last is the rest's
        long = starts[np.diff(starts, append=len(data)) > MAX_RECORD_BYTES]
        why = f"begins a record longer than {MAX_RECORD_BYTES:,} bytes, perhaps with a quote that never closes"
        self._none(data, long, why, _QUOTES)
        left = [starts[-1]] * bool(last and starts[-1] < len(data))
        self._none(data, left, "begins a record with a quote that never closes", _QUOTES)
        if not len(ends):
            return data
        records, rest = data[: starts[-1]], data[starts[-1] :]
        octets, quotes = octets[: len(records)], quotes[: np.searchsorted(quotes, len(records))]
        self._quotes(records, octets, quotes)
        self._line_ends(records, octets, quotes, ends)
        self._text(records)
        if not self.records:
            self._names(records[: ends[0] + 1])
        self._fields(records, octets, starts[:-1])
        self.records += len(ends)
        self._line += records.count(b"\n") if len(quotes) else len(ends)  # all LFs are ends then
        return rest

    def _alike(self, data: bytes) -> bool:
        """Whether these are records of as many fields as the first: most are, so what is wrong is sought elsewhere."""
        marks, record = data.translate(None, _TEXT), b"," * (self._width - 1) + b"\n"
        number, plain = len(marks) // max(self._width, 1), self.plain and 0 < len(data) <= MAX_RECORD_BYTES
        if not plain or self._width < 2 or marks != record * number:
            return False
        self._text(data)
        self.records, self._line = self.records + number, self._line + number
        return True

    def _quotes(self, data: bytes, octets: npt.NDArray[np.uint8], quotes: Integers) -> None:
        """Quotes come in pairs: each opens a field or follows a closing one, each closes one or a next follows it."""
        opening, closing = quotes[0::2], quotes[1::2]
        stray = opening[~_BEFORE_FIELD[octets[opening - 1]]]  # octets[-1] is an LF, as before any other record
        self._none(data, stray, "has a quote inside a field that has none around it", _QUOTES)
        after = closing[~_AFTER_FIELD[octets[closing + 1]]]
        self._none(data, after, "has text after a closing quote", _QUOTES)

    def _line_ends(self, data: bytes, octets: npt.NDArray[np.uint8], quotes: Integers, ends: Integers) -> None:
        """Outside quotes a CR stands before an LF alone, before each or before none."""
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            returns = np.flatnonzero(octets == _CR)
            returns = returns[octets[returns + 1] != _LF]
            self._none(data, returns[_outside(quotes, returns)], _BARE, _LINES)
        crlf = octets[ends - 1] == _CR
        self._crlf = bool(crlf[0]) if self._crlf is None else self._crlf
        self._none(data, ends[crlf != self._crlf], "ends otherwise than the first", _LINES)

    def _text(self, data: bytes) -> None:
        nul = [data.find(b"\0")] if b"\0" in data else []
        self._none(data, nul, "has a NUL byte", "Export it as text in UTF-8 (not UTF-16), without NUL bytes.")
        wrong = []
        try:
            _ = data.isascii() or data.decode()
        except UnicodeDecodeError as error:
            wrong = [error.start]
        self._none(data, wrong, "has bytes that are no UTF-8", "Export it in UTF-8.")

    def _names(self, record: bytes) -> None:
        """The first record is one line, and after a byte order mark DuckDB finds the end of its first name."""
        broken = any(byte in record.removesuffix(b"\n").removesuffix(b"\r") for byte in b"\r\n")
        self._none(record, [0] * broken, "names a column with a line break", "Name the columns on one line.")
        why = "begins with a byte order mark and a name that holds a comma or a quote"
        hidden = self._marked and not _MARKED.match(record)
        self._none(record, [0] * hidden, why, "Export it without a byte order mark, or rename that column.")

    def _fields(self, data: bytes, octets: npt.NDArray[np.uint8], starts: Integers) -> None:
        """Outside quotes every record has the same number of commas; a record of one field is not blank."""
        marks = np.frombuffer(data.translate(None, _TEXT), np.uint8)
        if b'"' in data:
            quotes = marks == _QUOTE
            marks = marks[(np.cumsum(quotes, dtype=np.uint8) & 1 == 0) & ~quotes]
        widths = np.diff(np.flatnonzero(marks == _LF), prepend=-1)  # commas and one more
        self._width = self._width or int(widths[0])
        self._none(data, starts[np.isin(octets[starts], (_LF, _CR))], "is blank", _BLANK)
        for place in np.flatnonzero(widths != self._width):
            why = f"begins a record of {widths[place]} fields and not {self._width}, as the first has"
            self._none(data, starts[place:], why, _FIELDS)

    def _none(self, data: bytes, places: Iterable[int], why: str, remedy: str) -> None:
        """Refuse the first of these places, if there is one."""
        for place in places:
            line = self._line + data.count(b"\n", 0, int(place))
            raise SetupError("malformed-csv", f"Line {line:,} of {self._name!r} {why}.", remedy)


def _outside(quotes: Integers, places: Integers) -> Integers:
    """Which places have an even number of quotes before them."""
    return cast("Integers", np.searchsorted(quotes, places) % 2 == 0)


def header(path: Path) -> list[str]:
    """The names in the first record."""
    csv.field_size_limit(sys.maxsize)
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with (
        contextlib.suppress(OSError, EOFError, zlib.error, csv.Error),
        opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines,
    ):
        return next(csv.reader(lines), [])
    raise SetupError("unreadable-data", f"{path.name!r} cannot be read to its end.")
