"""Where data, ledgers and prepared copies lie: addresses of PostgreSQL, and the defaults named after the data.

A table in PostgreSQL has a libpq address, with a few words in it that are sulq's own:

    postgresql://owner@HOST/DATABASE?table=clinic.visits&reader=asker&limit=3600

`table`: the table inside the database, where it is not the one in questions; `reader`:
the role questions are asked as; `limit`: the seconds one statement may take while rows
are prepared. Everything else is PostgreSQL's. No password is ever shown.
Imports errors alone; opens no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, unquote

from sulq.errors import SetupError

SCHEMES: Final = ("postgresql://", "postgres://")
WORDS: Final = ("table", "reader", "limit")
SECRETS: Final = frozenset({"password", "sslpassword", "oauth_client_secret"})  # words of a postgresql:// address
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


def tells_a_password(url: str) -> bool:
    """Whether an address holds a secret, as PostgreSQL's library reads it: it decodes names too, and trims them."""
    names = {unquote(word.partition("=")[0]).strip().lower() for word in re.split("[?&]", url)}
    return bool(re.search(r"://[^/]*:[^/]*@", url) or names & SECRETS)


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


def begun(private: Sequence[tuple[object, str]]) -> Path | str | None:
    """Where the ledger of private tables is begun that none covers; None for frames, whose ledger lies in memory.

    Public tables have no say, nor has the order of others: a ledger is found again by what it covers.

    Raises:
        SetupError: several tables have no such place together.
    """
    files = [source for source, _ in private if isinstance(source, Path)]
    if files:
        return beside_all(files)
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


def beside_all(files: Sequence[Path]) -> Path:
    """Where a ledger of several data files is begun: beside the first, or beside a whole that they are partitions of.

    Beside a folder that stands among them, not in it: there it would be one of the table's files to others who read
    the folder, and be gone with it.

    Raises:
        SetupError: they lie in several folders that are no partitions of one.
    """
    folders = [file for file in files if file.is_dir()]
    if folders:
        within = [file for file in files if not any(folder in file.parents for folder in folders)]
        files = [partition_folders(file / "any")[-1] if file in folders else file for file in within]
    wholes = {partition_folders(file)[-1] for file in files}
    if len({file.parent for file in files}) == 1:
        return beside(files[0])
    if len(wholes) == 1 and all(len(partition_folders(file)) > 1 for file in files):
        return beside(wholes.pop())
    raise scattered()


def scattered() -> SetupError:
    """What is told of data files that lie in several folders, or may come to."""
    return SetupError(
        "bad-declaration",
        "Data files in several folders need a ledger named by you: one beside a file is not found from the others.",
        "Write ledger=PATH, every time, or put the files into one folder.",
    )


def partition_folders(file: Path) -> list[Path]:
    """The folders of a data file up to that of the whole table: those called NAME=VALUE are partitions of it."""
    found = [file.parent]
    while "=" in found[-1].name:
        found.append(found[-1].parent)
    return found


def ledger_folders(data: Iterable[Path]) -> set[Path]:
    """Where a ledger of data files may lie: beside them; of a part of a partitioned table beside and in the whole.

    In the whole: also beside any other part, as the ledger of one part covers the whole that is asked after it.
    """
    places = [partition_folders(file) for file in data]
    wholes = {folders[-1] for folders in places if len(folders) > 1}
    above = {folder for folders in places for folder in folders} | {whole.parent for whole in wholes}
    return above.union(*map(partitions_within, wholes))


def partitions_within(whole: Path) -> list[Path]:
    """Every folder called NAME=VALUE in a folder, and in these."""
    found = [each for each in whole.glob("*=*") if each.is_dir() and not each.is_symlink()]  # which may lead back
    return [*found, *(within for each in found for within in partitions_within(each))]


def copy_of(near: Path, dataset: str) -> Path:
    """Where a dataset's prepared copy lies by default: datasets of one ledger have each their own."""
    own, name = stem(near), quote(dataset, safe="")
    return near.with_name(f"{own}.prepared" if name == own else f"{own}.{name}.prepared")


def stem(path: Path) -> str:
    """A data file's name without its endings."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0] or "data"
