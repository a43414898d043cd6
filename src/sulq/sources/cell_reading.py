"""How a source's cells are read: which kinds of cells there are, and the one grammar of numbers, truths and dates.

Both engines follow these rules, so a table gives the same integers whether it
arrives as Parquet, as text or as a frame, and one person's NULL, which may turn
a frame's whole column from integers into doubles, changes nobody else's (T26).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, cast

from sulq.errors import SetupError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp, Vertices
from sulq.language.privacy import Unit
from sulq.language.rowfn.piece import double, whole
from sulq.sources.decode.frames import WHOLE_LIMIT
from sulq.sources.decode.person import DIGITS, HALF, lowered, trimmed

Cell = Literal["truth", "whole", "wide", "number", "text", "date", "moment"]
"""What a source's column holds.

truth: booleans; whole: integers that fit 64 bits with sign; wide: larger ones;
number: doubles (decimals are read as such); text; date: days; moment: microseconds in UTC.
"""

NUMBER: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
TRUE: Final = ("true", "t", "1", "yes")
FALSE: Final = ("false", "f", "0", "no")
_HOUR: Final = "(?:[01][0-9]|2[0-3])"
_SIXTIETH: Final = "[0-5][0-9]"
DAY_ALONE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
MOMENT: Final = (
    rf"({DAY_ALONE})"
    rf"(?:[T ]({_HOUR}):({_SIXTIETH})(?::({_SIXTIETH})(?:\.([0-9]{{1,9}}))?)?(?:Z|([+-])({_HOUR}):({_SIXTIETH}))?)?"
)

TO_THE_SECOND: Final = rf"{DAY_ALONE}[T ]{_HOUR}:{_SIXTIETH}:{_SIXTIETH}Z?"

FIRST_DAY: Final = -719_162  # 0001-01-01
LAST_DAY: Final = 2_932_896  # 9999-12-31
DAY: Final = 86_400_000_000  # microseconds
FIRST_MOMENT: Final = FIRST_DAY * DAY
LAST_MOMENT: Final = (LAST_DAY + 1) * DAY - 1
BEYOND: Final = 2**62  # stands for every day or moment past the years 1 to 9999

_READS: Final[dict[type, tuple[Cell, ...]]] = {
    Int: ("truth", "whole", "wide", "number", "text"),
    Real: ("truth", "whole", "wide", "number", "text"),
    Bool: ("truth", "whole", "wide", "number", "text"),
    Category: ("truth", "whole", "wide", "number", "text", "date", "moment"),
    Date: ("date", "moment", "text"),
    Timestamp: ("date", "moment", "text"),
    Text: ("truth", "whole", "wide", "number", "text", "date", "moment"),
    Vertices: ("truth", "whole", "wide", "number", "text"),
}


def whole_values(column: Column) -> bool:
    """Whether a column's categories are whole numbers."""
    return isinstance(column, Category) and isinstance(column.values[0], int)


def agree(name: str, column: Column, cell: Cell) -> None:
    """Refuse a declaration that the source's kind of column can never meet."""
    readable = _READS[type(column)]
    if whole_values(column):
        readable = _READS[Int]
    if cell not in readable:
        raise SetupError(
            "bad-declaration",
            f"Column {name!r} is declared {type(column).__name__}, but the data holds {cell}s there.",
        )


def places(offered: list[str], schema: Schema, unit: Unit) -> dict[str, int]:
    """Where the needed columns stand among those the data offers, or a refusal that names what is missing."""
    needed = [*schema.names, *([] if unit.column is None else [unit.column])]
    absent = [name for name in dict.fromkeys(needed) if name not in offered]
    if absent:
        names = ", ".join(repr(name) for name in absent)
        mark = next((mark for mark in ";\t|" if len(offered) == 1 and mark in offered[0]), None)
        remedy = (
            "" if mark is None else f"Its only column has {mark!r} in its name: export it with commas between fields."
        )
        why = f"The data has no column {names} (it has: {', '.join(offered[:50])})."
        raise SetupError("missing-column", why, remedy)
    twice = [name for name in needed if offered.count(name) > 1]
    if twice:
        raise SetupError("unreadable-data", f"The data has more than one column {twice[0]!r}.", "Rename one of them.")
    return {name: offered.index(name) for name in needed}


MAX_LISTED_CATEGORIES: Final = 64  # so many are looked up in a list, which DuckDB does once for each distinct text
WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_MOMENTS: Final = {
    "TIMESTAMP": ("TIMESTAMP", ".999999"),
    "TIMESTAMP_S": ("TIMESTAMP_S", ""),
    "TIMESTAMP_MS": ("TIMESTAMP_MS", ".999"),
    "TIMESTAMP WITH TIME ZONE": ("TIMESTAMPTZ", ".999999+00"),
}


def plain(kind: str, item: str, name: str) -> tuple[Cell, str]:
    """What a source column of a DuckDB type holds, and how to get at it."""
    if kind == "BOOLEAN":
        return "truth", item
    if kind in WHOLE:
        return "whole", item
    if kind in ("UBIGINT", "HUGEINT"):
        return "wide", item
    if kind in ("FLOAT", "DOUBLE", HALF):
        return "number", f"CAST({item} AS DOUBLE)"
    if kind.startswith("DECIMAL") or kind in ("BIGNUM", DIGITS):
        digits = re.match(r"DECIMAL\(([0-9]+),", kind)
        if digits and int(digits[1]) <= 15:  # one division of exact doubles: correctly rounded
            return "number", f"CAST({item} AS DOUBLE)"
        return "number", f"TRY_CAST(CAST({item} AS VARCHAR) AS DOUBLE)"
    if kind == "VARCHAR":
        return "text", item
    if kind.startswith("ENUM") or kind == "UUID":
        return "text", f"CAST({item} AS VARCHAR)"
    if kind == '"NULL"':
        return "text", "CAST(NULL AS VARCHAR)"
    if kind == "DATE":
        first, last = "DATE '0001-01-01'", "DATE '9999-12-31'"
        return "date", _saturated(item, first, last, f"({item} - DATE '1970-01-01')")
    if kind in _MOMENTS:
        literal, fraction = _MOMENTS[kind]  # compared in their own type: beyond microseconds there is no other
        first, last = f"{literal} '0001-01-01 00:00:00{fraction[7:]}'", f"{literal} '9999-12-31 23:59:59{fraction}'"
        cast = item if ".999999" in fraction else f"TRY_CAST({item} AS TIMESTAMP)"
        return "moment", _saturated(item, first, last, f"epoch_us({cast})")
    if kind in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        zone = "+00" if kind == "TIMESTAMPTZ_NS" else ""
        first, last = (f"{kind} '{year}-01-01 00:00:00{zone}'" for year in (1678, 2262))
        units = f"epoch_ns({item})"  # // is a floor only for what is not negative
        inside = f"CASE WHEN {units} >= 0 THEN {units} // 1000 ELSE (-((999 - {units}) // 1000)) END"
        return "moment", _saturated(item, first, last, inside)
    raise SetupError(
        "bad-declaration", f"Column {name!r} of the data is of type {kind[:40]}, which sulq does not read."
    )


def _saturated(item: str, first: str, last: str, inside: str) -> str:
    beyond = f"WHEN {item} < {first} THEN {whole(-BEYOND)} WHEN {item} > {last} THEN {BEYOND}"
    return f"CASE WHEN {item} >= {first} AND {item} <= {last} THEN {inside} {beyond} END"


def value(column: Column, cell: Cell, item: str, usual: Sequence[str] = ()) -> tuple[Cell, str]:
    """Text as the number or moment its declaration expects; other cells as they are.

    `usual`: the names of what `usual` reads of the cell; without them it is read twice.
    """
    if cell != "text" or isinstance(column, (Text, Bool)):
        return cell, item
    if isinstance(column, (Date, Timestamp)):
        return "moment", _moment(item, *(usual or _usual(item)))
    if isinstance(column, Category) and not whole_values(column):
        return cell, item
    # Most numbers have no blanks around them.
    found = [
        f"WHEN regexp_full_match({text}, '{NUMBER}') THEN TRY_CAST({text} AS DOUBLE)" for text in (item, trimmed(item))
    ]
    if not isinstance(column, Real):  # and most whole ones are such as DuckDB writes them, which needs no pattern
        whole_number = f"TRY_CAST({item} AS BIGINT)"
        alike = f"{item} < ':' AND CAST({whole_number} AS VARCHAR) = {item}"
        found.insert(0, f"WHEN {alike} THEN CAST({whole_number} AS DOUBLE)")
    return "number", f"CASE {' '.join(found)} END"


def plainly(column: Column, cell: Cell, item: str) -> str:
    """A cell without the blanks around it where they say nothing; they do not where a number is looked for."""
    if cell != "text" or not isinstance(column, (Bool, Date, Timestamp)):
        return item
    # A moment has ten letters or more, a day ten: with a blank among ten there is none.
    return (
        trimmed(item)
        if isinstance(column, Bool)
        else f"CASE WHEN strlen({item}) = 10 THEN {item} ELSE {trimmed(item)} END"
    )


def usual(column: Column, cell: Cell, item: str) -> tuple[str, ...]:
    """What the usual forms of a moment may be, a day and a time to the second; `value` looks whether they are."""
    return _usual(item) if cell == "text" and isinstance(column, (Date, Timestamp)) else ()


def _usual(item: str) -> tuple[str, str]:
    day, moment = (
        f"CASE WHEN strlen({item}) = {length} THEN TRY_CAST({item} AS {kind}) END"
        for length, kind in ((10, "DATE"), (19, "TIMESTAMP"))
    )
    return day, moment


def _moment(item: str, usual_day: str, usual_moment: str) -> str:
    def part(group: int) -> str:
        return f"coalesce(TRY_CAST({_group(item, group)} AS BIGINT), 0)"

    day = f"TRY_CAST(substr({item}, 1, 10) AS DATE)"
    seconds = f"({part(2)} * 3600 + {part(3)} * 60 + {part(4)})"
    fraction = f"coalesce(TRY_CAST(rpad(substr({_group(item, 5)}, 1, 6), 6, '0') AS BIGINT), 0)"
    zone = f"(({part(7)} * 60 + {part(8)}) * CASE {_group(item, 6)} WHEN '-' THEN (-60) ELSE 60 END)"
    days = f"CASE WHEN {day} >= DATE '0001-01-01' THEN ({day} - DATE '1970-01-01') END"
    total = f"(({days}) * 86400 + {seconds} - {zone}) * 1000000 + {fraction}"
    # Most moments are a day or, to the second, a time. As DuckDB writes them no group need be looked for.
    hours, minutes, rest = (f"TRY_CAST(substr({item}, {at}, 2) AS BIGINT)" for at in (12, 15, 18))
    short = f"WHEN CAST({usual_day} AS VARCHAR) = {item} THEN ({usual_day} - DATE '1970-01-01') * {DAY}"
    plain = f"WHEN CAST({usual_moment} AS VARCHAR) = {item} THEN epoch_us({usual_moment})"
    usual = f"((({days}) * 24 + {hours}) * 60 + {minutes}) * 60 + {rest}"
    usual = f"WHEN regexp_full_match({item}, '{TO_THE_SECOND}') THEN ({usual}) * 1000000"
    return f"CASE {short} {plain} {usual} WHEN regexp_full_match({item}, '{MOMENT}') THEN {total} END"


def _group(item: str, group: int) -> str:
    return f"regexp_extract({item}, '^{MOMENT}$', {group})"


def shift(column: Column, cell: Cell) -> int:
    """How far from 0 a category's codes are counted where they need not be stored: what costs no arithmetic."""
    if not isinstance(column, Category):
        return 0
    if whole_values(column) and cell == "whole" and _consecutive(column):
        return int(column.values[0])
    return 1 if len(column.values) <= MAX_LISTED_CATEGORIES else 0


def code(column: Column, cell: Cell, item: str, place: int, *, exact: bool = True) -> str:
    """Grid units of a cell, NULL where missing and that is allowed; `exact`: as integers from 0, else the cheapest.

    Args:
        column: The declaration.
        cell: What `value` made of the source's cell.
        item: Its SQL, a plain name.
        place: The column's number, which names its categories.
        exact: Whether the codes are to be stored; else numbers may be whole doubles and categories shifted.
    """
    found = _code(column, cell, item, place, exact=exact)
    by = shift(column, cell)
    if exact and by:
        found, by = f"CAST({found} AS BIGINT) - {whole(by)}", 0
    return found if column.missing else f"coalesce({found}, {_filled(column, by)})"


def _filled(column: Column, by: int) -> str:
    """What stands for a missing cell, as a constant."""
    found = column.filled
    return whole(found + by) if isinstance(found, int) else "'" + found.replace("'", "''") + "'"


def _code(column: Column, cell: Cell, item: str, place: int, *, exact: bool) -> str:
    if isinstance(column, Text):
        return cut(text(cell, item), column.longest)
    if isinstance(column, Bool):
        return _truth(cell, item)
    if isinstance(column, Category):
        return _category(column, cell, item, place)
    if isinstance(column, Vertices):
        return _vertex(column, cell, item, exact=exact)
    if isinstance(column, Int) and cell in ("truth", "whole", "wide"):
        return _clamped(f"CAST({item} AS INTEGER)" if cell == "truth" else item, column.low, column.high)
    if isinstance(column, (Int, Real)):
        item = item if cell == "number" else _as_double(cell, item)
        return _on_grid(item, column, exact=exact)
    if isinstance(column, Timestamp):
        return (
            _clamped(f"({item} * {DAY})", column.low, column.high, item)
            if cell == "date"
            else _clamped(item, column.low, column.high)
        )
    return _day(column, cell, item)


def _clamped(item: str, low: int, high: int, guard: str | None = None) -> str:
    if guard is None:
        a, b = whole(low), whole(high)
        inside = f"WHEN {item} >= {a} AND {item} <= {b} THEN TRY_CAST({item} AS BIGINT)"
        return f"CASE {inside} WHEN {item} < {a} THEN {a} WHEN {item} > {b} THEN {b} END"
    first, last = FIRST_DAY, LAST_DAY  # only such days are multiplied
    bounded = f"CASE WHEN {guard} >= {whole(first)} AND {guard} <= {last} THEN {_clamped(item, low, high)}"
    return f"{bounded} WHEN {guard} < {whole(first)} THEN {whole(low)} WHEN {guard} > {last} THEN {whole(high)} END"


def _vertex(column: Vertices, cell: Cell, item: str, *, exact: bool) -> str:
    """A vertex's number; what is no whole number within the bounds is missing, never clamped onto a vertex."""
    if cell in ("truth", "whole", "wide"):
        item = f"CAST({item} AS INTEGER)" if cell == "truth" else item
        inside = f"{item} >= {whole(column.low)} AND {item} <= {whole(column.high)}"
        return f"CASE WHEN {inside} THEN TRY_CAST({item} AS BIGINT) END"
    item = item if cell == "number" else _as_double(cell, item)
    low, high = double(float(column.low)), double(float(column.high))
    found = f"TRY_CAST({item} AS BIGINT)" if exact else item
    return f"CASE WHEN {item} >= {low} AND {item} <= {high} AND {item} = floor({item}) THEN {found} END"


def _as_double(cell: Cell, item: str) -> str:
    if cell == "wide":  # a 128-bit integer is rounded once, by its digits
        return f"TRY_CAST(CAST({item} AS VARCHAR) AS DOUBLE)"
    return f"CAST({item} AS DOUBLE)"


def _on_grid(item: str, column: Int | Real, *, exact: bool) -> str:
    """The one expression all engines share (FACTS): NaN sorts above infinity and falls through to NULL."""
    low, high = double(float(column.low * column.step)), double(float(column.high * column.step))
    scale = double(float(Fraction(1) / column.step))
    units = f"floor({item} * {scale} + 0.5e0)" if column.step != 1 else f"floor({item} + 0.5e0)"
    if max(abs(column.low), abs(column.high)) > 2**51:  # x + 0.5 would itself round: such doubles are whole or .5
        units = f"CASE WHEN abs({item}) < {double(2.0**51)} THEN {units} ELSE floor({item}) END"
    lowest, highest = (whole(n) if exact else double(float(n)) for n in (column.low, column.high))
    beyond = f"WHEN {item} < {low} THEN {lowest} WHEN {item} <= CAST('inf' AS DOUBLE) THEN {highest}"
    units = f"TRY_CAST({units} AS BIGINT)" if exact else units
    return f"CASE WHEN {item} >= {low} AND {item} <= {high} THEN {units} {beyond} END"


def _truth(cell: Cell, item: str) -> str:
    if cell == "truth":
        return f"CAST({item} AS TINYINT)"
    if cell != "text":
        return f"CASE {item} WHEN 0 THEN 0 WHEN 1 THEN 1 END"
    yes, no = (", ".join(f"'{word}'" for word in words) for words in (TRUE, FALSE))
    return f"CASE WHEN {lowered(item)} IN ({yes}) THEN 1 WHEN {lowered(item)} IN ({no}) THEN 0 END"


def _category(column: Category, cell: Cell, item: str, place: int) -> str:
    """The place in a short list, from 1, which DuckDB looks up once for each distinct text; or the code beside it."""
    if looked_up(column, cell):
        return item
    found = listed(column, cell, item)
    if found is not None:
        return f"list_position($categories{place}, {found})"
    lowest, highest = whole(int(column.values[0])), whole(int(column.values[-1]))
    # In 64 bits: codes are counted from the lowest, and a difference of two small integers may not fit their type.
    return f"CASE WHEN {item} >= {lowest} AND {item} <= {highest} THEN CAST({item} AS BIGINT) END"


def looked_up(column: Column, cell: Cell) -> bool:
    """Whether a column's codes are found in a table of its values, so that a cell costs the same in any list."""
    long = isinstance(column, Category) and len(column.values) > MAX_LISTED_CATEGORIES
    return long and listed(cast("Category", column), cell, "") is not None


def listed(column: Category, cell: Cell, item: str) -> str | None:
    """The text of a cell that is looked for among the values; None where whole numbers themselves give the codes."""
    if not whole_values(column):
        return text(cell, item)
    if cell == "whole" and _consecutive(column):
        return None
    limit = 2**53
    if cell == "truth":
        item = f"CAST({item} AS INTEGER)"
    elif cell == "number":
        item = (
            f"CASE WHEN {item} = floor({item}) AND abs({item}) <= {double(limit)} THEN TRY_CAST({item} AS BIGINT) END"
        )
    elif cell == "wide":
        item = f"CASE WHEN {item} >= {whole(-limit)} AND {item} <= {limit} THEN TRY_CAST({item} AS BIGINT) END"
    return f"CAST({item} AS VARCHAR)"


def _consecutive(column: Category) -> bool:
    first = int(column.values[0])
    return column.values == tuple(range(first, first + len(column.values)))


def _day(column: Date, cell: Cell, item: str) -> str:
    if cell == "date":
        return _clamped(item, column.low, column.high)
    first, last = column.low * DAY, (column.high + 1) * DAY - 1
    inside = f"(({item} - {whole(first)}) // {DAY} + {whole(column.low)})"
    beyond = (
        f"WHEN {item} < {whole(first)} THEN {whole(column.low)} WHEN {item} > {whole(last)} THEN {whole(column.high)}"
    )
    return f"CASE WHEN {item} >= {whole(first)} AND {item} <= {whole(last)} THEN {inside} {beyond} END"


def cut(item: str, longest: int) -> str:
    """A free text's first characters; most are short, as the number of their bytes says at once."""
    return f"CASE WHEN strlen({item}) > {longest} THEN substr({item}, 1, {longest}) ELSE {item} END"


def text(cell: Cell, item: str) -> str:
    """A cell as text: digits for whole numbers of any type, ISO for days and moments of the years 1 to 9999."""
    if cell == "text":
        return item
    if cell in ("truth", "whole", "wide"):
        return f"CAST({item} AS VARCHAR)"
    if cell == "number":
        limit = double(float(WHOLE_LIMIT))
        digits = (
            f"WHEN {item} = floor({item}) AND abs({item}) < {limit} THEN CAST(TRY_CAST({item} AS BIGINT) AS VARCHAR)"
        )
        return f"CASE WHEN isnan({item}) THEN NULL {digits} ELSE CAST({item} AS VARCHAR) END"
    if cell == "date":
        first, last = whole(FIRST_DAY), whole(LAST_DAY)
        iso = f"CAST(DATE '1970-01-01' + TRY_CAST({item} AS INTEGER) AS VARCHAR)"
    else:
        first, last = whole(FIRST_MOMENT), whole(LAST_MOMENT)
        iso = f"CAST(make_timestamp({item}) AS VARCHAR)"
    return f"CASE WHEN {item} >= {first} AND {item} <= {last} THEN {iso} END"
