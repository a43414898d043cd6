"""What every release is: an object made once from answers, that anybody may use for ever without the data.

A release sees answers only, so whatever is done with it afterwards costs nothing more (post-processing). It says what
it cost and whom it protects. On disk it is its tables, a description, and a page to read, which fetches nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, get_args

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from sulq.answers import wire
from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.forms.parameters import checked
from sulq.kernel.ledger.chain import Receipt
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, Unit
from sulq.release.page import Chart, page
from sulq.version import __version__

__all__ = ["Chart", "Paid", "Release", "ReleaseFiles"]

FORMAT: Final = 1  # of a saved release
DESCRIPTION: Final = "release.json"
PAGE: Final = "index.html"
PART: Final = ".sulq-part"  # ends the name of a file that is not whole yet
Written = Literal["parquet", "csv"]


@dataclass(frozen=True, slots=True)
class Paid:
    """What a release cost, whom it protects and in what sense, and the receipts of its debits."""

    spent: Loss
    unit: Unit
    guarantee: str
    receipts: tuple[Receipt, ...] = ()
    version: str = field(default=__version__)

    @classmethod
    def by(cls, spending: SpendPlan) -> Paid:
        """What a spending has paid so far; a receipt as everybody may see it, without the ledger's own code."""
        receipts = tuple(replace(receipt, mac="", stored=None) for receipt in spending.receipts)
        return cls(spending.spent, spending.facts.unit, spending.guarantee, receipts)

    def to_json(self) -> dict[str, object]:
        """As a description says it."""
        return {
            "spent": wire.to_json(self.spent),
            "unit": wire.to_json(self.unit),
            "guarantee": self.guarantee,
            "receipts": [
                {"seq": receipt.seq, "entry": receipt.entry, "plan": receipt.plan} for receipt in self.receipts
            ],
            "version": self.version,
        }

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Paid:
        """What `to_json` told; a receipt without the ledger's own code, which stays with the ledger."""
        spent, unit = wire.from_json(tree["spent"]), wire.from_json(tree["unit"])
        if not isinstance(spent, (Epsilon, EpsilonDelta, Rho, Queries)) or not isinstance(unit, Unit):
            raise unreadable()
        receipts = tuple(
            Receipt(int(told["seq"]), str(told["entry"]), str(told["plan"]), "") for told in tree["receipts"]
        )
        return cls(spent, unit, str(tree["guarantee"]), receipts, str(tree["version"]))

    def __str__(self) -> str:
        entries = ", ".join(str(receipt.seq) for receipt in self.receipts)
        return f"spent {self.spent}, protects {self.unit} ({self.guarantee}); ledger entry {entries or 'none'}"


def labels_to_json(labels: Sequence[Sequence[object]]) -> list[list[object]]:
    """The names of the attributes' cells, as plain JSON: an interval is a list of its ends."""
    return [[list(label) if isinstance(label, tuple) else label for label in own] for own in labels]


def labels_from_json(tree: Sequence[Sequence[object]]) -> tuple[tuple[object, ...], ...]:
    """What `labels_to_json` told."""
    return tuple(tuple(tuple(label) if isinstance(label, list) else label for label in own) for own in tree)


def unreadable(why: str = "This is not a release that sulq wrote.") -> QuestionError:
    """The refusal of what cannot be loaded."""
    return QuestionError("bad-release", why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(ABC):
    """A published object. `paid` says what it cost; a kind adds its fields, and says what its files hold.

    A kind is a frozen dataclass with `kind`, its name; `title()`; `tables()` and `facts()`, from which
    `of` makes it again; and `charts()` for its page. Fields are public: all of it comes from answers.
    """

    kind: ClassVar[str] = ""
    paid: Paid

    @abstractmethod
    def title(self) -> str:
        """One line for people."""

    @abstractmethod
    def tables(self) -> dict[str, pa.Table]:
        """The tables that are saved, each by its file's name without an ending."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Whatever else is needed to make it again, as plain JSON."""

    @classmethod
    @abstractmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The release that was saved as these."""

    def charts(self) -> list[Chart]:
        """The pictures of its page."""
        return []

    def page(self, charts: Sequence[Chart], written: Written) -> str:
        """Its page, with these pictures: HTML that fetches nothing. `written`: how the files beside it end."""
        del written
        return page(self.title(), str(self.paid), charts)

    def save(self, path: str | Path, written: Written = "parquet") -> None:
        """Write it into a folder: a Parquet or CSV file for each table, `release.json`, and a page to read.

        A release that is there already is replaced; other files of that folder are left alone.

        Raises:
            QuestionError: `bad-parameter`: tables are written as Parquet or CSV.
            SetupError: `missing-file`: the folder cannot be written. `folder-in-use`: it holds something else.
        """
        check_written(written)
        replaced(Path(path))  # before its tables are made
        ReleaseFiles.of(self).save(path, written)

    def __repr__(self) -> str:
        return f"{self.title()}; {self.paid}"

    def __init_subclass__(cls) -> None:
        # A dataclass writes down all its fields where its own class says nothing else: whole tables, here.
        if "__repr__" not in vars(cls):
            cls.__repr__ = Release.__repr__  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseFiles:
    """A release as it is shown and written: its tables and charts, which may take long to make, made once."""

    release: Release
    tables: Mapping[str, pa.Table]
    charts: tuple[Chart, ...]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Lay a release out."""
        return cls(release, release.tables(), tuple(release.charts()))

    def description(self) -> dict[str, object]:
        """All that is said of a release beside its tables: what it is, what it cost, whom it protects."""
        return {
            "format": FORMAT,
            "release": self.release.kind,
            "title": self.release.title(),
            "paid": self.release.paid.to_json(),
            "facts": self.release.facts(),
            # Names and kinds of a table's columns, so that a CSV file reads back as it was.
            "schema": {name: {f.name: str(f.type) for f in table.schema} for name, table in self.tables.items()},
        }

    def files(self, written: Written = "parquet") -> dict[str, bytes]:
        """What a saved release consists of; the description is the last, as without it there is no release.

        Raises:
            QuestionError: `bad-parameter`: there is no such way to write a table.
        """
        check_written(written)
        described = self.description() | {"tables": {name: f"{name}.{written}" for name in self.tables}}
        made = {f"{name}.{written}": _written(table, written) for name, table in self.tables.items()}
        shown = self.release.page(self.charts, written)
        return made | {PAGE: shown.encode(), DESCRIPTION: _json(described)}

    def save(self, path: str | Path, written: Written = "parquet") -> None:
        """Write the files into a folder; see `Release.save`."""
        place = Path(path)
        made = self.files(written)
        old = replaced(place)
        try:
            place.mkdir(parents=True, exist_ok=True)
            _replace(place, made, old)
        except OSError:
            raise _unwritable(path) from None


def check_written(written: object) -> None:
    """Refuse a way to write tables that there is not."""
    ways = get_args(Written)
    checked(written in ways, f"written is one of: {', '.join(ways)}.")


def replaced(place: Path) -> tuple[str, ...]:
    """The files of the release that is in a folder and that the next one replaces; none where there is nothing.

    Raises:
        SetupError: `folder-in-use`: something else is in it. `missing-file`: it is no folder, or cannot be read.
    """
    try:
        there = {file.name for file in place.iterdir()}
    except FileNotFoundError:
        return ()
    except OSError:
        raise _unwritable(place) from None
    there = {name for name in there if not name.endswith(PART)}  # what a save that was broken off had begun
    if not there:
        return ()
    try:
        told = _described(place)
        names = {Path(str(file)).name for file in told["tables"].values()}
    except (SulqError, LookupError, AttributeError):
        told, names = {}, set()
    if told.get("format") != FORMAT:
        raise SetupError("folder-in-use", f"{place} holds something else than a release.")
    ours = {name for name in names if name.endswith(tuple(f".{way}" for way in get_args(Written)))}
    return tuple(sorted((ours | {PAGE}) & there))


def _replace(place: Path, made: Mapping[str, bytes], old: Iterable[str]) -> None:
    """Put new files in the place of old ones, so that whenever it is broken off what loads is one release.

    All is written beside first: until then the old release is whole. Then the description says that the release
    is unfinished, which does not load but names what to clear away, until the last file is in its place.
    """
    tables = [name for name in made if name not in (PAGE, DESCRIPTION)]
    named = sorted({*tables, *old} - {PAGE})
    unfinished = _json({"format": FORMAT, "unfinished": True, "tables": dict(zip(named, named, strict=True))})
    begun = {name: place / f".{name}{PART}" for name in ("unfinished", *made)}
    for file in place.glob(f".*{PART}"):
        file.unlink(missing_ok=True)
    try:
        for name, content in {"unfinished": unfinished, **made}.items():
            _whole(begun[name], content)
        begun["unfinished"].replace(place / DESCRIPTION)
        for name in {*old} - made.keys():
            (place / name).unlink(missing_ok=True)
        for name in (*tables, PAGE, DESCRIPTION):
            begun[name].replace(place / name)
    finally:
        for file in begun.values():
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def _whole(file: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk: a name that it gets later must not get there first."""
    with file.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def load_as(path: str | Path, kinds: Mapping[str, type[Release]]) -> Release:
    """The release that was saved in a folder; it needs no data, no curator and no budget.

    Raises:
        SetupError: `missing-file`: there is no such folder, or a file of it is gone.
        QuestionError: `bad-release`: it is no release, or of a format or kind this version does not know.
    """
    place = Path(path)
    told = _described(place)
    if told.get("format") != FORMAT:
        raise unreadable("This release is of a format that this version of sulq does not know.")
    if told.get("unfinished"):
        raise unreadable("This release was not written to its end; save it again.")
    kind = kinds.get(str(told.get("release")))
    if kind is None:
        raise unreadable("This release is of a kind that this version of sulq does not know.")
    try:
        files, schemas = told["tables"], told["schema"]
        tables = {str(name): _read(place / Path(str(file)).name, schemas[name]) for name, file in files.items()}
        return kind.of(Paid.from_json(told["paid"]), told["facts"], tables)
    except OSError:
        raise SetupError("missing-file", f"A file of the release {path} cannot be read.") from None
    except (SulqError, LookupError, TypeError, ValueError, AttributeError, pa.ArrowException):
        raise unreadable() from None


def _described(place: Path) -> dict[str, Any]:
    try:
        told = wire.strict((place / DESCRIPTION).read_bytes())
    except OSError:
        raise SetupError("missing-file", f"There is no release in {place}.") from None
    except SulqError:
        raise unreadable() from None
    if not isinstance(told, dict):
        raise unreadable()
    return told


def _json(tree: Mapping[str, object]) -> bytes:
    text = json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _unwritable(path: str | Path) -> SetupError:
    return SetupError("missing-file", f"The release cannot be written to {path}.")


def _written(table: pa.Table, written: Written) -> bytes:
    made = io.BytesIO()
    if written == "csv":
        pc.write_csv(table, made)
    else:
        pq.write_table(table, made)
    return made.getvalue()


def _read(file: Path, schema: Mapping[str, str]) -> pa.Table:
    if file.suffix != ".csv":
        return pq.read_table(file)
    types = {name: pa.type_for_alias("double" if kind == "double" else kind) for name, kind in schema.items()}
    options = pc.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    return pc.read_csv(file, convert_options=options)
