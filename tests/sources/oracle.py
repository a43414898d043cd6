"""The big-integer oracle: what cells, row functions and sums mean, one row at a time in plain Python.

It shares no code with the engines or with the row functions' NumPy meaning: it
works with Python's own integers, fractions and floats (IEEE doubles, one
operation at a time).
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp
from sulq.language.tally import Tally
from tests.meaning import meaning, units

BLANKS = " \t\n\v\f\r"
DAY = 86_400_000_000
FAR = 10**18
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kind_of(kind: pa.DataType) -> str:
    """What a column of an Arrow type holds."""
    types = pa.types
    if types.is_boolean(kind):
        return "truth"
    if types.is_integer(kind):
        return "whole"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind):
        return "day"
    return "moment" if types.is_timestamp(kind) else "text"


def plain(kind: pa.DataType, cell: object) -> object:
    """A cell as a bool, int, float or str; days and microseconds (far away past the years 1 to 9999) as ints."""
    if cell is None:
        return None
    held = kind_of(kind)
    if held == "number":
        return float(cell)
    if held == "day":
        return cell if -719_162 <= cell <= 2_932_896 else math.copysign(FAR, cell).__int__()
    if held == "moment":
        if kind.unit == "ns":
            inside = -106_650 * DAY * 1000 <= cell <= 106_651 * DAY * 1000
            return cell // 1000 if inside else int(math.copysign(FAR, cell))
        inside = -719_162 * DAY <= cell < 2_932_897 * DAY
        return cell if inside else int(math.copysign(FAR, cell))
    return cell


def parse_number(text: str) -> float | None:
    text = text.strip(BLANKS)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        return None
    exact = Fraction(re.sub(r"\.(?=[eE]|$)", "", text.lstrip("+")) or "0")
    try:
        return float(exact)  # correctly rounded
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def parse_moment(text: str) -> int | None:
    found = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?",
        text.strip(BLANKS),
        re.ASCII,
    )
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    zone = found[8] or "Z"
    shift = 0
    if zone != "Z":
        if int(zone[1:3]) > 23 or int(zone[4:]) > 59:
            return None
        shift = int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[4:])) * 60 * 10**6
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError:
        return None
    since = moment - EPOCH
    micro = int(((found[7] or "") + "000000")[:6])
    return since.days * DAY + since.seconds * 10**6 + micro - shift


def write(kind: str, cell: object) -> str | None:
    """A cell as text."""
    if kind == "truth":
        return "true" if cell else "false"
    if kind == "number":
        if math.isnan(cell):
            return None
        return str(int(cell)) if math.isfinite(cell) and cell == int(cell) and abs(cell) < 2**63 else repr(cell)
    if kind in ("day", "moment"):
        if abs(cell) == FAR:
            return None
        if kind == "day":
            return str(datetime.date(1970, 1, 1) + datetime.timedelta(cell))
        moment = str((EPOCH + datetime.timedelta(microseconds=cell)).replace(tzinfo=None))
        return moment.rstrip("0") if "." in moment else moment
    return str(cell)


def clamp(value, low, high):
    return max(low, min(high, value))


def read(column: Column, kind: pa.DataType, cell: object) -> object:
    """A cell's code on its column's grid (a str for Text), or None."""
    held, cell = kind_of(kind), plain(kind, cell)
    if cell is None:
        return None
    if isinstance(column, Text):
        return write(held, cell)
    if isinstance(column, Bool):
        if held == "text":
            word = "".join(c.lower() if c.isascii() else c for c in cell.strip(BLANKS))
            return {"true": 1, "t": 1, "1": 1, "yes": 1, "false": 0, "f": 0, "0": 0, "no": 0}.get(word)
        return int(cell) if cell in (0, 1) else None
    if isinstance(column, Category):
        if isinstance(column.values[0], str):
            text = write(held, cell)
            return column.values.index(text) if text in column.values else None
        number = parse_number(cell) if held == "text" else cell
        if number is None or not math.isfinite(number) or number != int(number) or int(number) not in column.values:
            return None
        return column.values.index(int(number))
    if isinstance(column, (Date, Timestamp)):
        moment = parse_moment(cell) if held == "text" else cell
        if moment is None:
            return None
        if isinstance(column, Date) and held != "day":
            moment = moment // DAY
        if isinstance(column, Timestamp) and held == "day":
            moment = moment * DAY
        return clamp(moment, column.low, column.high)
    return _on_grid(column, held, cell)


def _on_grid(column: Int | Real, held: str, cell: object) -> int | None:
    if isinstance(column, Int) and held in ("whole", "truth"):
        return clamp(int(cell), column.low, column.high)
    number = parse_number(cell) if held == "text" else float(cell)
    if number is None or math.isnan(number):
        return None
    if Fraction(column.low) * column.step > (
        Fraction(number) if math.isfinite(number) else math.copysign(FAR**9, number)
    ):
        return column.low
    if math.isinf(number) or Fraction(number) > column.high * column.step:
        return column.high
    if max(abs(column.low), abs(column.high)) > 2**51 and abs(number) >= 2**51:
        return math.floor(number)
    return math.floor(number * float(1 / column.step) + 0.5)


def canonical(kind: pa.DataType, cell: object, fold: str | None = None) -> str | None:
    """The text that stands for a person: numbers by exact value, texts by their bytes unless they are folded."""
    held, plainly = kind_of(kind), plain(kind, cell)
    if plainly is None:
        return None
    if held == "number":
        if not math.isfinite(cell):
            return None
        text = format(Decimal(cell), "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    text = write(held, plainly)
    if held == "moment" and kind.unit == "ns" and text is not None and cell % 1000:
        text = text[:19] + "." + str(cell % 10**9).zfill(9).rstrip("0")
    if held == "text" and fold == "spelling":
        text = unicodedata.normalize("NFC", text.strip(BLANKS).replace("\u11a7", ""))
    if held == "text" and fold is not None:
        text = "".join(c.lower() if c.isascii() else c for c in text)
    if held == "text" and fold == "spelling" and re.fullmatch(r"-?[0-9]+\.0+", text):
        text = text.split(".")[0]
    return text or None


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 4


def kept(data, key: bytes, rows: list[int] | None = None) -> list[dict[str, object]]:
    """The kept rows: codes by column name, with the hash of the person and the position beside them."""
    owned: dict[str | None, list[tuple[dict[str, object], int]]] = {}
    places = range(data.size) if rows is None else rows
    for place, i in enumerate(places):
        cells = data.row(i)
        codes = {name: read(column, *cells[name]) for name, column in data.schema.columns}
        for name, column in data.schema.columns:
            if codes[name] is None and not column.missing:
                codes[name] = column.filled
        if data.unit.neighbors == "zero_out" and all(code is None for code in codes.values()):
            continue
        person = None
        if data.unit.column is not None:
            person = canonical(*cells[data.unit.column], data.unit.fold)
            if person is None:
                continue
        owned.setdefault(person, []).append((codes, place))
    chosen = []
    for person, mine in owned.items():
        if person is not None:
            mine.sort(key=lambda row: _order(key, person, list(row[0].values())))
        for codes, place in mine if person is None else mine[: data.unit.rows]:
            chosen.append(codes | {"person": hashed(str(place) if person is None else person), "position": place})
    return chosen


def _order(key: bytes, who: str, codes: list[object]) -> bytes:
    parts = ["~" if c is None else f"{len(c.encode())}:{c}" if isinstance(c, str) else str(c) for c in codes]
    return hashlib.sha256("\x1f".join([key.hex(), who, *parts]).encode()).digest()


def sums(tally: Tally, schema, rows: list[dict[str, object]]) -> list[list[int]]:
    """Exact sums by cell, saturated at +-2^62."""
    totals = [[0] * tally.width for _ in range(tally.cells)]
    for row in rows:
        if tally.where is not None and meaning(tally.where, schema, row) is not True:
            continue
        cell = 0
        for key in tally.by:
            code = meaning(key.fn, schema, row)
            if code is None:
                cell = None
                break
            cell = cell * len(key.labels) + int(code)
        if cell is None:
            continue
        start = 0
        for block in tally.blocks:
            value = meaning(block.fn, schema, row)
            if value is not None:
                terms = value if block.vector else [units(value, block.step, block.low[0], block.high[0])]
                for i, term in enumerate(terms):
                    totals[cell][start + i] += term
            start += block.width
    return [[clamp(total, -(2**62), 2**62) for total in cell] for cell in totals]
