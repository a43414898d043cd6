"""A release: saved as files that anybody reads, and made again from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pytest

from sulq import Epsilon, Unit, release
from sulq.answers.answer import Receipt
from sulq.errors import QuestionError, SetupError
from sulq.release import base
from sulq.release.base import Chart, Paid, Release, Written, load_as

PAID = Paid(Epsilon(1), Unit(), "dp", (Receipt(3, "ab" * 32, "cd" * 32, "ef"),))
HOSTILE = "<script>alert(1)</script>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Release):
    """A release of two columns."""

    kind: ClassVar[str] = "pair"
    table: pa.Table

    def title(self) -> str:
        return f"A pair {HOSTILE}"

    def tables(self) -> dict[str, pa.Table]:
        return {"cells": self.table}

    def facts(self) -> dict[str, object]:
        return {"rows": self.table.num_rows}

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        return cls(paid=paid, table=tables["cells"].slice(0, facts["rows"]))

    def charts(self) -> list[Chart]:
        return [Chart(HOSTILE, ("a", HOSTILE), (1.5, -2.0), (0.5, 1.0), HOSTILE)]


MADE = Pair(paid=PAID, table=pa.table({"name": ["a", None, ""], "value": [1.25, -2.0, 3.0], "whole": [1, 2, 2**60]}))


@pytest.mark.parametrize("written", ["parquet", "csv"])
def test_what_was_saved_is_loaded(tmp_path: Path, written: Written) -> None:
    """Tables, facts and promise come back; the ledger's own code of a receipt does not leave it."""
    MADE.save(tmp_path / "out", written)
    found = load_as(tmp_path / "out", {"pair": Pair})
    assert isinstance(found, Pair)
    assert found.table.equals(MADE.table)
    assert (found.paid.spent, found.paid.unit, found.paid.guarantee) == (Epsilon(1), Unit(), "dp")
    assert [(r.seq, r.entry, r.mac) for r in found.paid.receipts] == [(3, "ab" * 32, "")]
    assert '"ef"' not in (tmp_path / "out" / "release.json").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Two(Pair):
    """A release of more tables."""

    kind: ClassVar[str] = "two"

    def tables(self) -> dict[str, pa.Table]:
        return {"cells": self.table, "more": self.table.slice(1)}


KINDS = {"pair": Pair, "two": Two}
LATER = Pair(paid=PAID, table=MADE.table.slice(0, 1))


def names(place: Path) -> set[str]:
    return {file.name for file in place.iterdir()}


def test_a_release_is_printed_in_one_line() -> None:
    """Its title and what it cost; not its tables."""
    assert repr(Two(paid=PAID, table=MADE.table)) == f"A pair {HOSTILE}; {PAID}"
    for kind in release.KINDS:
        assert kind.__repr__ in (
            Release.__repr__,
            release.PublishedReport.__repr__,
            release.Transcript.__repr__,
        )


def test_tables_are_written_in_a_way_there_is(tmp_path: Path) -> None:
    """Any other is refused and nothing is written."""
    for wrong in ("feather", "PARQUET", None):
        with pytest.raises(QuestionError) as refused:
            MADE.save(tmp_path / "out", wrong)
        assert refused.value.code == "bad-parameter"
        assert "parquet, csv" in refused.value.message
    assert not (tmp_path / "out").exists()


def test_a_later_release_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    """The files that its description names are gone, and no others. Control: without them being named they stay."""
    Two(paid=PAID, table=MADE.table).save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "mine.csv").write_text("mine", encoding="utf-8")
    assert "more.parquet" in names(tmp_path)
    LATER.save(tmp_path, "csv")
    assert names(tmp_path) == {"cells.csv", "index.html", "release.json", "notes.txt", "mine.csv"}
    assert load_as(tmp_path, KINDS).table.num_rows == 1


def test_a_description_cannot_name_what_is_not_a_releases(tmp_path: Path) -> None:
    """Only tables of the folder itself are cleared away."""
    place = tmp_path / "out"
    MADE.save(place)
    for file in (place / "notes.txt", tmp_path / "cells.csv", place / "own.csv"):
        file.write_text("mine", encoding="utf-8")
    file = place / "release.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    told["tables"] |= {"a": "notes.txt", "b": "../cells.csv", "c": "own.csv"}
    file.write_text(json.dumps(told), encoding="utf-8")
    MADE.save(place)
    assert (tmp_path / "cells.csv").exists()
    assert names(place) == {"cells.parquet", "index.html", "release.json", "notes.txt"}


@pytest.mark.parametrize("file", ["thesis.txt", "index.html", "cells.parquet"])
def test_a_folder_with_something_else_is_not_written_to(tmp_path: Path, file: str) -> None:
    """A code, a next step, and everything as it was; also where a file is called like a description."""
    (tmp_path / file).write_text("mine", encoding="utf-8")
    for other in (None, "{}", "[]", "{", '{"tables": {}}', '{"format": 1}', '{"format": 2, "tables": {}}'):
        if other is not None:
            (tmp_path / "release.json").write_text(other, encoding="utf-8")
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
        with pytest.raises(SetupError) as refused:
            MADE.save(tmp_path)
        assert refused.value.code == "folder-in-use"
        assert "empty folder" in refused.value.remedy
        assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


class Crash(BaseException):
    """The process is gone: nothing after it is done, not even what should be cleared away."""


@pytest.mark.parametrize("earlier", [True, False])
def test_a_save_that_is_broken_off_leaves_one_release_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    earlier: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """At every step: what loads is the old one or the new one, whole; and saving again mends it.

    Control: some of the steps leave the old one, and some none.
    """
    seen = set()
    for stop in range(100):
        place = tmp_path / str(stop)
        if earlier:
            Two(paid=PAID, table=MADE.table).save(place)
        with monkeypatch.context() as patched:
            steps = iter(range(stop + 1))

            def step(real, steps=steps):
                def act(self, *args, **options):
                    if next(steps, None) is None:
                        raise Crash
                    return real(self, *args, **options)

                return act

            for name in ("open", "replace", "unlink", "mkdir"):
                patched.setattr(Path, name, step(getattr(Path, name)))
            try:
                LATER.save(place)
                ended = True
            except Crash:
                ended = False
        try:
            found = load_as(place, KINDS)
        except (SetupError, QuestionError) as error:
            seen.add(error.code)
        else:
            rows = {"pair": 1, "two": 3}[found.kind]
            assert found.table.num_rows == rows
            seen.add(found.kind)
        LATER.save(place)
        assert load_as(place, KINDS).table.num_rows == 1
        assert names(place) == {"cells.parquet", "index.html", "release.json"}
        if ended:
            break
    assert ended
    assert seen == ({"two", "bad-release", "pair"} if earlier else {"missing-file", "bad-release", "pair"})


def test_a_full_disk_leaves_the_earlier_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is cleared away, and what was there still loads."""
    Two(paid=PAID, table=MADE.table).save(tmp_path)
    before = names(tmp_path)

    def full(_file: Path, _content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(base, "_whole", full)
        with pytest.raises(SetupError, match="cannot be written"):
            LATER.save(tmp_path)
    assert names(tmp_path) == before
    assert isinstance(load_as(tmp_path, KINDS), Two)


def test_texts_stay_texts_T82(tmp_path: Path) -> None:
    """The page shows hostile names as texts and fetches nothing."""
    MADE.save(tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http://" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    """A folder without one, one of another kind or format, and one whose file is gone: each says so."""
    with pytest.raises(SetupError, match="no release"):
        load_as(tmp_path, {"pair": Pair})
    MADE.save(tmp_path)
    with pytest.raises(QuestionError, match="kind"):
        load_as(tmp_path, {})
    file = tmp_path / "release.json"
    text = file.read_text(encoding="utf-8")
    for wrong in ("[]", "{", text.replace('"format": 1', '"format": 2'), text.replace('"spent"', '"paid"')):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(QuestionError) as caught:
            load_as(tmp_path, {"pair": Pair})
        assert caught.value.code == "bad-release"
    file.write_text(text, encoding="utf-8")
    (tmp_path / "cells.parquet").unlink()
    with pytest.raises(SetupError):
        load_as(tmp_path, {"pair": Pair})
    occupied = tmp_path / "file"
    occupied.write_text("", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be written"):
        MADE.save(occupied)
