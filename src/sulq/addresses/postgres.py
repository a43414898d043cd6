"""Where tables in PostgreSQL lie: a libpq address, and the few words in it that are sulq's own.

    postgresql://owner@HOST/DATABASE?table=clinic.visits&reader=asker&limit=3600

`table`: the table inside the database, where it is not the one in questions; `reader`:
the role questions are asked as; `limit`: the seconds one statement may take while rows
are prepared. Everything else is PostgreSQL's. No password is ever shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote

from sulq.errors import SetupError

SCHEMES: Final = ("postgresql://", "postgres://")
WORDS: Final = ("table", "reader", "limit")
MAX_LIMIT_SECONDS: Final = 30 * 86_400.0  # seconds


@dataclass(frozen=True, slots=True, repr=False)
class TableAddress:
    """One table's place; as text it shows no user and no password."""

    url: str  # for PostgreSQL's own library
    table: str | None
    reader: str | None
    limit: float | None
    shown: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL, taking our own words out of it.

        Raises:
            SetupError: `bad-config` if one of our words stands there twice, or says nothing.
        """
        start, mark, query = url.partition("?")
        own: dict[str, str] = {}
        for word in words(url):
            name, _, value = word.partition("=")
            if name in WORDS:
                if name in own or not value:
                    raise SetupError("bad-config", f"The word {name!r} stands in the address once, with a value.")
                own[name] = unquote(value)
        others = "&".join(foreign(url))
        place = start.partition("://")[2].rpartition("@")[2]
        if "@" in query and "@" not in start:  # a password with a bare ? in it: nothing of this is shown
            place = "..."
        return cls(
            f"{start}{mark if others else ''}{others}",
            own.get("table"),
            own.get("reader"),
            _seconds(own.get("limit")),
            f"postgresql://{place}",
        )

    def inside(self, name: str | None) -> tuple[str, str]:
        """The schema and name of a table: as the address says, else as in questions; of `public` where none is said."""
        told = self.table or name
        if not told:
            raise SetupError("bad-declaration", "Name a table of the database.", "Write table=NAME.")
        schema, dot, rest = told.partition(".")
        return (schema, rest) if dot else ("public", told)

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__


def is_address(data: object) -> bool:
    """Whether data is named by a PostgreSQL address."""
    return isinstance(data, str) and data.lower().startswith(SCHEMES)


def words(url: str) -> list[str]:
    """The words of an address after its `?`, as they are written."""
    return [word for word in url.partition("?")[2].split("&") if word]


def foreign(url: str) -> list[str]:
    """Those of them that are PostgreSQL's, not sulq's own."""
    return [word for word in words(url) if word.partition("=")[0] not in WORDS]


def meant(url: str) -> dict[str, str]:
    """What the words say; of one that stands twice the last counts, as PostgreSQL has it."""
    pairs = (word.partition("=") for word in words(url))
    return {unquote(name).strip(): unquote(value) for name, _, value in pairs}


def same_database(one: str, other: str) -> bool:
    """Whether two addresses, as they are written, name one database: of several hosts one in common is enough."""
    (mine, name), (theirs, their_name) = _places(one), _places(other)
    return name == their_name and not mine.isdisjoint(theirs)


def _places(url: str) -> tuple[set[tuple[str, str]], str]:
    """The hosts and ports of an address, and its database."""
    told = meant(url)
    start, _, path = url.partition("?")[0].partition("://")[2].rpartition("@")[2].partition("/")
    pairs = [item.rpartition(":") if re.search(r":\d*$", item) else (item, "", "") for item in start.split(",")]
    hosts = (told.get("hostaddr") or told.get("host") or ",".join(host for host, _, _ in pairs)).split(",")
    ports = (told.get("port") or ",".join(port for _, _, port in pairs)).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    found = {(unquote(host).lower(), port or "5432") for host, port in zip(hosts, ports, strict=False)}
    return found, told.get("dbname") or unquote(path) or told.get("service", "")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= MAX_LIMIT_SECONDS:
        raise SetupError("bad-config", "limit in the address is a number of seconds from 0.01 to 2592000.")
    return seconds
