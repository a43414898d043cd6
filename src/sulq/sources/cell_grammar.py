"""How a source's cells are read: which kinds of cells there are, and the one grammar of numbers, truths and dates.

Both engines follow these rules, so a table gives the same integers whether it
arrives as Parquet, as text or as a frame, and one person's NULL, which may turn
a frame's whole column from integers into doubles, changes nobody else's (T26).
"""

from __future__ import annotations

import re
from typing import Final, Literal

from sulq.errors import SetupError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp, Vertices
from sulq.language.privacy import Unit

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
MOMENT: Final = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    rf"(?:[T ]({_HOUR}):({_SIXTIETH})(?::({_SIXTIETH})(?:\.([0-9]{{1,9}}))?)?(?:Z|([+-])({_HOUR}):({_SIXTIETH}))?)?"
)
NUMBER_PATTERN: Final = re.compile(NUMBER)
MOMENT_PATTERN: Final = re.compile(MOMENT)

FIRST_DAY: Final = -719_162  # 0001-01-01
LAST_DAY: Final = 2_932_896  # 9999-12-31
DAY: Final = 86_400_000_000  # microseconds
FIRST_MOMENT: Final = FIRST_DAY * DAY
LAST_MOMENT: Final = (LAST_DAY + 1) * DAY - 1
NANOSECOND_YEARS: Final = (-106_650 * DAY, 106_651 * DAY)  # moments counted in nanoseconds: 1678 to 2262
BEYOND: Final = 2**62  # stands for every day or moment past the years 1 to 9999
SEPARATOR: Final = "\x1f"
MISSING: Final = "~"
HASH_DIGITS: Final = 15  # hex digits of a person's public hash: 60 bits

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
