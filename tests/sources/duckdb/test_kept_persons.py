"""Persons are counted before rows are chosen, in parts that have room: the same rows however it is done (SR2, SR15)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.rowfn import each, lit
from sulq.language.rowfn.writer import KeptRows
from sulq.sources.duckdb import kept_persons, prepare
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from tests import counts
from tests.counts import count
from tests.sources.cases import KEY, ask, duck, plain_engine, sums, table


def _crowd(seed: int) -> list[tuple[object, ...]]:
    """Persons with none to twenty rows, many of which are equal."""
    rng = counts.generator(seed)
    persons = [(f"p{i}", rng.choice((0, 1, 2, 3, 4, 20))) for i in range(40)]
    rows = [
        (who, rng.randrange(6), float(rng.randrange(3)), rng.choice("xy"), None) for who, n in persons for _ in range(n)
    ]
    rng.shuffle(rows)
    return rows


BY_ROW = ask(lit(1), by=(each("age"), each("city")))


def _ways(monkeypatch: pytest.MonkeyPatch, digits: int, at_once: int, most: int, persons: int) -> None:
    """How long beginnings of hashes are, how many rows and persons are taken at once, how many rows are compared."""
    monkeypatch.setattr(kept_persons, "PREFIX_DIGITS", digits)
    monkeypatch.setattr(kept_persons, "MAX_LEAST", most)
    monkeypatch.setattr(prepare, "MAX_ORDERED_ROWS", at_once)
    monkeypatch.setattr(prepare, "MAX_PERSONS", persons)
    monkeypatch.setattr(prepare, "MAX_UNCOUNTED_ROWS", persons)


ALL, MANY = kept_persons.PREFIX_DIGITS, 10**6


@pytest.mark.parametrize(
    ("digits", "at_once", "most", "persons"),
    [(1, MANY, MANY, MANY), (ALL, MANY, MANY, MANY), (1, 7, MANY, MANY), (ALL, 7, 3, MANY), (1, 7, MANY, 9)],
    ids=["ties", "no ties", "ties in parts", "more rows than DuckDB compares", "persons in parts"],
)
def test_the_same_rows_are_kept_however_they_are_chosen_SR2(
    digits: int, at_once: int, most: int, persons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons with few rows, with many, and with rows tied at the last place: as in the plain meaning.

    Control: choosing among tied rows by anything but their whole hashes keeps others.
    """
    _ways(monkeypatch, digits, at_once, most, persons)
    for seed in range(count("crowds", short=3, long=200)):
        rows, unit = _crowd(seed), Unit("who", 3)
        for some in ([row for row in rows if row[0] == f"p{seed % 40}"], rows):
            assert sums(duck(table(some), unit), BY_ROW) == sums(plain_engine(table(some), unit), BY_ROW)
    real = kept_persons.keep.ordered
    monkeypatch.setattr(kept_persons.keep, "ordered", lambda columns, key: f"reverse({real(columns, key)})")
    assert sums(duck(table(rows), unit), BY_ROW) != sums(plain_engine(table(rows), unit), BY_ROW)


def test_a_person_with_too_many_rows_after_a_tie_stops_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the ties: where nobody is taken for tied, the kernel's check finds persons with too many rows."""
    monkeypatch.setattr(kept_persons, "PREFIX_DIGITS", 1)
    real = kept_persons.lasts
    monkeypatch.setattr(kept_persons, "lasts", lambda item: f"(SELECT whose, last, false AS tied FROM {real(item)})")
    with pytest.raises(SetupError) as stopped:
        duck(table(_crowd(1)), Unit("who", 3)).ready()
    assert stopped.value.code == "unfit-rows"


@pytest.mark.parametrize("prepared", ["memory", "file"])
@pytest.mark.parametrize("persons", [MANY, 9], ids=["at once", "in parts"])
def test_a_csv_file_with_persons_is_read_once_and_keeps_the_same_rows_SR2(
    persons: int, prepared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the plain meaning reads the file. Control: where it is not held as codes it is read for each statement."""
    _ways(monkeypatch, 1, 7, MANY, persons)
    real, read = prepare._create, []

    def told(connection: object, name: str, rows: KeptRows, **more: object) -> None:
        read.append("read_csv" in rows.relation)
        real(connection, name, rows, **more)

    monkeypatch.setattr(prepare, "_create", told)
    data, unit = tmp_path / "data.csv", Unit("who", 3)
    rows = [*_crowd(3), ("  ", 1, 1.0, "x", None), (None, 1, 1.0, "x", "b")]
    pa.csv.write_csv(table(rows), data)
    more = {"prepared": tmp_path / "copy"} if prepared == "file" else {}
    want = sums(plain_engine(data, unit), BY_ROW)
    assert sums(duck(data, unit, **more), BY_ROW) == want
    assert sum(read) == 1
    read.clear()
    monkeypatch.setattr(kept_persons, "slow", lambda _: False)
    (tmp_path / "copy").unlink(missing_ok=True)
    assert sums(duck(data, unit, **more), BY_ROW) == want
    assert sum(read) > 1


def test_a_person_is_in_one_part_whatever_the_type_of_its_number_SR15(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that store ids in 8, 32 and 64 bits agree on each person's part, and on the number it gets there.

    Control: by the hash of a row's own type a table loses persons.
    """
    monkeypatch.setattr(prepare, "MAX_PERSONS", 7)
    monkeypatch.setattr(prepare, "MAX_UNCOUNTED_ROWS", 7)
    schemas = [Schema(name, ((f"x{name}", Int(0, 9)),)) for name in "abc"]
    kinds = [pa.int8(), pa.int32(), pa.int64()]
    frames = [
        pa.table({"who": pa.array([i % 40 - 20 for i in range(90)], kind), f"x{name}": [i % 7 for i in range(90)]})
        for name, kind in zip("abc", kinds, strict=True)
    ]

    def met() -> list[int]:
        given = [Given(Origin.of(frame), TableFacts(schema)) for frame, schema in zip(frames, schemas, strict=True)]
        engine = DuckEngine(Dataset(tuple(given), Unit("who", 5), KEY))
        engine.ready()
        found = engine._connection.root.execute(
            "SELECT count(*), count(DISTINCT kept0.o), (SELECT count(*) FROM kept0), (SELECT count(*) FROM kept2), "
            "bool_and(kept0.h = kept1.h) FROM kept0 JOIN kept1 USING (o) JOIN kept2 USING (o)"
        ).fetchall()
        engine.close()
        return list(found[0])

    assert met() == [10 * 27 + 30 * 8, 40, 90, 90, True]
    real = kept_persons.Part.only
    monkeypatch.setattr(kept_persons.Part, "only", lambda *given: real(*given).replace("CAST(w AS BIGINT)", "w"))
    assert met() != [10 * 27 + 30 * 8, 40, 90, 90, True]
