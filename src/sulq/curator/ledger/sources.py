"""Which private data a ledger covers, and which ledger covers private data: a person space is not a path (T98).

A ledger notes every private source it covers, in entries that stay: of a file its
path, device and inode; of a table its database and oids; of a table of Spark its
name. What a file's size, time and bytes are stands there only as a MAC under the
ledger's own key (SR25), so that a copy is known again and nobody else learns of it.

    path, or device and inode with size and time      the same file, renamed or linked
    path below a folder, or by a pattern, that was    a part of that table, whenever it came there
    named
    bytes                                             a copy of it
    device and inode alone                            changed since and renamed, or other data in the same place on
                                                      disk: nobody can tell, so the owner is asked

Ledgers of version 0.1.0 noted a file's name, size and time when it was registered, and are known by those.
"""

from __future__ import annotations

import codecs
import dataclasses
import enum
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from sulq.curator.ledger import checkpoints
from sulq.data_files import Pattern
from sulq.errors import SetupError
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.store import Store, damaged

COVERING: Final = ('"kind":"cover"', '"kind":"register"')  # in the entries that say what data a ledger covers
SUFFIX: Final = ".ledger"  # by which ledgers are found in a folder
WHOLE: Final = 1 << 24  # bytes of a file that are read whole; of a longer one PIECES, both ends among them
PIECES: Final = 256
NEXT: Final = (
    "Name that ledger: ledger=...; a new one only for people that it does not protect: ledger=NEW, new_people=True."
)


class Likeness(enum.IntEnum):
    """Whether a source is one that a ledger covers."""

    OTHER = 0
    UNSURE = 1
    SAME = 2


@dataclass(frozen=True, slots=True)
class Source:
    """One private source, as far as it can be told from others; `own` is where its ledger lies by default.

    `kind`: file, folder, pattern, table or spark. `within`: a file's device, a table's database. `numbers`: a file's
    inode; the oids of a table and of all that lie under it. `stamp`: size and time. `digest`: of bytes; None where it
    is yet to be taken.
    """

    kind: str
    place: str
    within: str = ""
    numbers: tuple[int, ...] = ()
    stamp: str = dataclasses.field(default="", repr=False)
    digest: str | None = dataclasses.field(default="", repr=False)
    own: str = ""

    @classmethod
    def file(cls, path: Path, own: Path | str = "") -> Self:
        """A data file by what its folder says of it; its bytes are read only where nothing else tells.

        Raises:
            SetupError: `missing-file`.
        """
        try:
            path = path.resolve()
            stat = path.stat()
        except OSError:
            raise SetupError("missing-file", f"There is no data file {str(path)!r}.") from None
        stamp = f"{stat.st_size} {stat.st_mtime_ns}"
        return cls("file", str(path), str(stat.st_dev), (stat.st_ino,), stamp, None, str(own))

    @property
    def name(self) -> str:
        """What its owner calls it."""
        return Path(self.place).name if self.kind in ("file", "folder") else self.place

    @property
    def content(self) -> str:
        """What its bytes are known by, "" where they cannot be read."""
        return _content(self.place, self.stamp) if self.digest is None else self.digest

    def unread(self) -> Source:
        """The same, to whoever may not read its bytes."""
        return self if self.digest else replace(self, digest="")

    def read(self) -> Source:
        """The same with its bytes read, for whoever may not."""
        return replace(self, digest=self.content)

    def to_json(self) -> dict[str, object]:
        """As a tree of JSON, between the processes of a server."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, tree: Mapping[str, object]) -> Self:
        """Read it back."""
        return cls(**{**tree, "numbers": tuple(tree["numbers"])})  # type: ignore[arg-type]  # written above


class Cover(NamedTuple):
    """A source as a ledger noted it; stamp and content are MACs, but plain in what version 0.1.0 registered."""

    kind: str
    place: str
    within: str = ""
    numbers: tuple[int, ...] = ()
    stamp: str = ""
    content: str = ""
    new_people: bool = False

    def knows(self, source: Source, key: bytes) -> bool:
        """Whether nothing about the source has changed since: no byte of it need be read."""
        if self.kind == "name":
            return (self.place, self.stamp) == (source.name, source.stamp) and source.kind == "file"
        mine = (self.kind, self.place, self.within, self.numbers)
        return mine == (source.kind, source.place, source.within, source.numbers) and self.stamp == _mac(
            key, "stamp", source.stamp
        )

    def likeness(self, source: Source, key: bytes, folder: Path | None) -> Likeness:
        """Whether it is this source; `folder` is where the ledger lies."""
        if self.kind == "name":
            return self._registered(source, folder)
        if self.kind == "folder" and source.kind in ("file", "folder"):
            return Likeness.SAME if Path(source.place).is_relative_to(self.place) else Likeness.OTHER
        if self.kind == "pattern" and source.kind == "file":
            return Likeness.SAME if Pattern(self.place).holds(Path(source.place)) else Likeness.OTHER
        if self.kind != source.kind:
            return Likeness.OTHER
        if source.kind != "file":
            shared = self.place == source.place or not {*self.numbers}.isdisjoint(source.numbers)
            return Likeness.SAME if shared and _one_base(self.within, source.within) else Likeness.OTHER
        there = (self.within, self.numbers) == (source.within, source.numbers)
        if self.place == source.place or (there and self.stamp == _mac(key, "stamp", source.stamp)):
            return Likeness.SAME
        if self.content and source.content and self.content == _mac(key, "bytes", source.content):
            return Likeness.SAME
        return Likeness.UNSURE if there else Likeness.OTHER

    def _registered(self, source: Source, folder: Path | None) -> Likeness:
        """By what version 0.1.0 registered: a name, a size and a time; bytes only if the file is still there."""
        if source.kind != "file":
            return Likeness.OTHER
        if self.stamp == source.stamp or (self.place == source.name and folder == Path(source.place).parent):
            return Likeness.SAME
        if self.stamp.partition(" ")[0] != source.stamp.partition(" ")[0]:
            return Likeness.OTHER
        try:
            other = Source.file(Path("/nowhere" if folder is None else folder, self.place))
        except SetupError:
            return Likeness.UNSURE
        if self.stamp != other.stamp or not source.content or not other.content:
            return Likeness.UNSURE
        return Likeness.SAME if other.content == source.content else Likeness.OTHER


class LedgerCover(NamedTuple):
    """A ledger as far as it says what it covers; `opened` is what opens it."""

    opened: Path | str
    space: str
    key: bytes
    covers: tuple[Cover, ...]
    synthetic: bool = False

    @property
    def folder(self) -> Path | None:
        """Where it lies, if it is a file."""
        return self.opened.parent if isinstance(self.opened, Path) else None

    def knows(self, source: Source) -> bool:
        """Whether it noted this source as it stands."""
        return any(cover.knows(source, self.key) for cover in self.covers)

    def likeness(self, source: Source) -> Likeness:
        """Whether it covers a source: by what it noted, or by its own name."""
        if source.own and source.own == str(self.opened):
            return Likeness.SAME
        found = (cover.likeness(source, self.key, self.folder) for cover in self.covers)
        return max(found, default=Likeness.OTHER)


def source_key(receipt_key: bytes) -> bytes:
    """The key of a ledger's MACs over what it covers; it never leaves the ledger."""
    return hmac.new(receipt_key, b"sulq sources", hashlib.sha256).digest()


def covered(source: Source, key: bytes, *, new_people: bool, time: str) -> str:
    """An entry that says a ledger covers a source; of size, time and bytes it keeps only what its own key can check."""
    kept = {"stamp": _mac(key, "stamp", source.stamp), "bytes": source.content and _mac(key, "bytes", source.content)}
    told = {"source": source.kind, "place": source.place, "within": source.within, "numbers": list(source.numbers)}
    return canonical({"kind": "cover", "time": time, **told, **kept, **({"new_people": True} if new_people else {})})


def read_cover(body: Mapping[str, object]) -> Cover:
    """Read what a ledger covers; ValueError where it is not what was written."""
    texts = [body.get(name) for name in ("source", "place", "within", "stamp", "bytes")]
    numbers = body.get("numbers")
    if not all(isinstance(text, str) for text in texts) or not isinstance(numbers, list):
        raise ValueError("not a source")
    kind, place, within, stamp, content = map(str, texts)
    return Cover(kind, place, within, tuple(map(int, numbers)), stamp, content, body.get("new_people") is True)


def cover_from(tree: Sequence[Any]) -> Cover:
    """Read a cover as a checkpoint says it."""
    kind, place, within, numbers, *more = tree
    return Cover(kind, place, within, tuple(numbers), *more)


def read_registered(source: str) -> Cover | None:
    """What version 0.1.0 noted of a file when it was registered: its name, size and time."""
    name, _, rest = source.rpartition(" ")
    name, _, size = name.rpartition(" ")
    return Cover("name", name, stamp=f"{size} {rest}") if name and size.isdecimal() and rest.isdecimal() else None


def kept_source(source: str, key: bytes) -> str:
    """What a registration keeps of a source: nothing that tells of its size or time (SR25)."""
    return source if source == "frame" else f"mac {_mac(key, 'source', source)}"


def cover_of(opened: Path | str, rows: Iterable[Row]) -> LedgerCover:
    """A ledger by its first entry and those that say what it covers.

    Raises:
        SetupError: `ledger-damaged`: it does not say.
    """
    covers: list[Cover] = []
    space, key, synthetic = "", b"", False
    for row in rows:
        try:
            body = json.loads(row.body)
            if row.seq == 1:
                space, key = str(body["space"]), source_key(bytes.fromhex(body["receipt_key"]))
                synthetic = body["synthetic"] is True
            elif body.get("kind") == "checkpoint":
                covers = [*map(cover_from, body["covers"])]
            elif body.get("kind") == "cover":
                covers.append(read_cover(body))
            elif body.get("kind") == "register" and not body.get("public", False):
                covers += filter(None, [read_registered(str(body.get("source")))])
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise damaged(f"entry {row.seq} of {shown(opened)}", "cannot be read") from error
    if not key:
        raise damaged(f"the first entry of {shown(opened)}", "is missing")
    return LedgerCover(opened, space, key, tuple(covers), synthetic)


def told(store: Store) -> list[Row]:
    """The first entry of a ledger, its last checkpoint, and later entries that may say what data it covers.

    Privacy: of a ledger that lost an entry, or in which one was changed, nobody can say what it covers (T98). Entries
    before the last checkpoint are read when the ledger is opened, aside.

    Raises:
        SetupError: `ledger-damaged`.
    """
    store.reading()
    try:
        known = checkpoints.find(store, parts=False)
        found = [] if known is None else [known.first, known.row]
        last = (0, ORIGIN) if known is None else (known.row.seq, known.row.hash)
        for row in store.rows(last[0]):
            if row.seq != last[0] + 1 or row.hash != link(last[1], row.seq, row.body):
                raise damaged(f"entry {last[0] + 1}", "is missing, or was changed")
            last = (row.seq, row.hash)
            if row.seq == 1 or any(kind in row.body for kind in COVERING):
                found.append(row)
        if not found or store.head() != last:
            raise damaged("the end", "is missing, or was not written by sulq")
    finally:
        store.rollback()
    return found


def covering(source: Source, books: Sequence[LedgerCover]) -> dict[Path | str, Likeness]:
    """The ledgers that cover a source, or may; bytes are read only where none knows it as it stands."""
    asked = source.unread() if any(book.knows(source) for book in books) else source
    found = {book.opened: book.likeness(asked) for book in books}
    if asked is not source:
        found = {place: likeness for place, likeness in found.items() if likeness is Likeness.SAME}
    return {place: likeness for place, likeness in found.items() if likeness}


def choose(sources: Sequence[Source], books: Sequence[LedgerCover]) -> Path | str | None:
    """The one ledger that covers any of these sources; None where none does.

    Raises:
        SetupError: `several-ledgers`: more than one does. `covered-source`: one may, and nobody can tell.
    """
    found: dict[Path | str, Likeness] = {}
    for source in sources:
        for place, likeness in covering(source, books).items():
            found[place] = max(likeness, found.get(place, likeness))
        if source.own and Path(source.own).exists():  # what bears its name is opened, or says why it cannot be
            found[Path(source.own)] = Likeness.SAME
    if len(found) > 1:
        names = ", ".join(sorted(map(shown, found)))
        raise SetupError("several-ledgers", f"Several ledgers cover this data, or may: {names[:400]}.")
    for place, likeness in found.items():
        if likeness is Likeness.UNSURE:
            why = "lies where a file lay that the ledger {} covers, under another name and with other contents"
            raise SetupError("covered-source", f"{_names(sources)} {why.format(shown(place))}.", NEXT)
        return place
    return None


def agree(sources: Sequence[Source], own: LedgerCover | None, others: Iterable[LedgerCover]) -> None:
    """Refuse a ledger for sources that another covers more surely; one of synthetic data protects nobody.

    Raises:
        SetupError: `covered-source`; the message names the other ledger.
    """
    others = [book for book in others if not book.synthetic and (own is None or book.space != own.space)]
    for source in sources:
        mine = noted(source, own)
        found = sorted(shown(place) for place, likeness in covering(source, others).items() if likeness > mine)
        if found:
            why = f"{source.name[:200]!r} is covered by the ledger {found[0]}: another would be a second budget"
            raise SetupError("covered-source", f"{why} for the same people.", NEXT)


def noted(source: Source, own: LedgerCover | None) -> Likeness:
    """Whether a ledger covers a source by what it noted; a name alone is no note of it."""
    found = {} if own is None else covering(replace(source, own=""), [own])
    return max(found.values(), default=Likeness.OTHER)


def shown(place: Path | str) -> str:
    """A ledger's place without a password."""
    return place.name if isinstance(place, Path) else f"{place.rpartition('ledger=')[2]} of the database"


def _names(sources: Sequence[Source]) -> str:
    return ", ".join(repr(source.name[:200]) for source in sources[:5])


def _one_base(one: str, other: str) -> bool:
    """Whether databases are one: by their oid, and by their cluster's number where both could be asked for it."""
    (base, _, cluster), (same, _, another) = one.partition("@"), other.partition("@")
    return base == same and (cluster == another or not cluster or not another)


def _mac(key: bytes, what: str, text: str) -> str:
    return hmac.new(key, f"{what} {text}".encode(), hashlib.sha256).hexdigest()


@lru_cache(maxsize=64)
def _content(place: str, stamp: str) -> str:
    """A digest of a file's bytes; of a long file's evenly spaced pieces, which a copy has as well."""
    size = int(stamp.partition(" ")[0])
    digest = hashlib.sha256(size.to_bytes(16, "big"))
    piece = WHOLE // PIECES
    try:
        with Path(place).open("rb", buffering=0) as file:
            if size <= WHOLE:
                digest.update(file.read(WHOLE))
            for i in range(PIECES if size > WHOLE else 0):
                file.seek((size - piece) * i // (PIECES - 1))
                digest.update(file.read(piece))
    except OSError:
        return ""
    return digest.hexdigest()


def is_text_file(path: Path) -> bool:
    """Whether a file that SQLite does not take is written in words; a ledger's pages are full of zeros."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    try:
        return "\x00" not in codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
