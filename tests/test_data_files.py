"""Several files as one table: the same rows as in one file, and a part that is unlike them is named (SR12, T98)."""

from __future__ import annotations

import json
import os
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon, Unit
from sulq.cli.config import find
from sulq.cli.open import address as address_of
from sulq.cli.open import asked as asked_of
from sulq.data_files import Files, Pattern, find_files
from sulq.errors import SetupError
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.rowfn import col, each, lit, position
from sulq.sources.origin import Origin
from tests.sources.cases import ask, duck, memory, plain_engine, sums

SCHEMA = Schema.of("data", {"age": Int(0, 120), "city": Category(("x", "y"))})
HIVE = Schema.of(
    "data", {"age": Int(0, 120), "city": Category(("x", "y")), "year": Int(2020, 2025), "kind": Category(("a b",))}
)
WHOLE = pa.table(
    {
        "who": [f"p{i % 11}" for i in range(60)],
        "age": pa.array([i if i % 7 else None for i in range(60)], pa.int64()),
        "city": ["xyz"[i % 3] for i in range(60)],
    }
)
ASKED = ask(lit(1), col("age"), by=(col("city"),), schema=SCHEMA), ask(lit(1), by=(each("age"),), schema=SCHEMA)


def parts(folder: Path, kind: str = "parquet", sizes: tuple[int, ...] = (25, 0, 34, 1)) -> list[Path]:
    """The rows of the whole table in several files."""
    found, start = [], 0
    for i, size in enumerate(sizes):
        path, rows = folder / f"part{i}.{kind}", WHOLE.slice(start, size)
        pq.write_table(rows, path) if kind == "parquet" else pa.csv.write_csv(rows, path)
        found.append(path)
        start += size
    return found


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "unit", [Unit(), Unit("who", rows=3), Unit(neighbors="replace_one")], ids=["row", "who", "place"]
)
def test_parts_are_as_one_table(kind: str, unit: Unit, tmp_path: Path) -> None:
    """A list, a pattern and a folder give the sums of all rows in one frame, on every engine; places go on.

    Control: without one part they are others.
    """
    found = parts(tmp_path, kind)
    asked = (*ASKED, ask(lit(1), where=position() == 30, schema=SCHEMA)) if unit.positions_are_public else ASKED
    want = sums(plain_engine(WHOLE, unit, SCHEMA), *asked)
    for given in ([str(path) for path in found], found, tmp_path / "part*", tmp_path, str(tmp_path)):
        assert sums(duck(given, unit, SCHEMA), *asked) == want
    assert sums(duck(tmp_path, unit, SCHEMA, prepared=False), *asked) == want
    assert sums(duck(tmp_path, unit, SCHEMA, prepared=tmp_path / "copy"), *asked) == want
    assert sums(memory(found, unit, SCHEMA), *asked) == want
    assert sums(duck(found[:-2], unit, SCHEMA), *asked) != want


def test_partitions_are_columns(tmp_path: Path) -> None:
    """Folders called NAME=VALUE give each row of a file that value; one that is missing is missing."""
    want = []
    for i, year in enumerate(("2021", "2022", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"year={year}" / "kind=a%20b"
        folder.mkdir(parents=True)
        rows = WHOLE.slice(20 * i, 20)
        pq.write_table(rows, folder / "rows.parquet")
        values = {"year": pa.repeat(pa.scalar(None if year.startswith("_") else year, pa.string()), 20)}
        values["kind"] = pa.repeat("a b", 20)
        want.append(rows.append_column("year", values["year"]).append_column("kind", values["kind"]))
    asked = (
        ask(lit(1), col("age"), by=(each("year"), col("kind")), schema=HIVE),
        ask(lit(1), where=col("year") <= 2021, schema=HIVE),
    )
    expected = sums(plain_engine(pa.concat_tables(want), None, HIVE), *asked)
    for opened in (duck, memory):
        assert sums(opened(tmp_path, None, HIVE), *asked) == expected
    assert sums(duck(tmp_path / "*" / "*" / "rows.parquet", None, HIVE), *asked) == expected
    with pytest.raises(SetupError, match="names no person"):
        duck(tmp_path, Unit("year"), HIVE)


def test_a_part_of_a_partitioned_table_has_no_second_budget_T98(tmp_path: Path) -> None:
    """The ledger of the whole is found from a part, in the whole's folder or beside it. Control: other rows."""
    for name, where in (("a", "all/own.ledger"), ("b", "b.ledger"), ("d", None)):
        root = tmp_path / name / "all"
        for i, year in enumerate((2021, 2022)):
            folder = root / f"year={year}"
            folder.mkdir(parents=True)
            pq.write_table(WHOLE.slice(20 * i, 20), folder / "rows.parquet")
        columns = {"age": Int(0, 120)}
        told = None if where is None else tmp_path / name / where
        with sulq.connect(root, columns=columns, ledger=told, budget=Epsilon(3)) as db:
            db.count(spend=Epsilon(2))
        part = root / "year=2022" / "rows.parquet"
        with sulq.connect(part, columns=columns, budget=Epsilon(3)) as db:
            assert db._ledger.path == tmp_path / name / (where or "all.ledger")
        assert not [*root.rglob("rows.ledger")]
    other = tmp_path / "c" / "year=2022"
    other.mkdir(parents=True)
    pq.write_table(WHOLE.slice(45, 10), other / "rows.parquet")
    with sulq.connect(other / "rows.parquet", columns=columns, budget=Epsilon(3)) as db:
        assert db._ledger.path == other / "rows.ledger"


def test_the_ledger_of_one_part_is_found_from_any_other_T98(tmp_path: Path) -> None:
    """One part is asked alone, then the whole, under the ledger of that part: the other parts are covered by it."""
    parts = [tmp_path / "all" / f"year={year}" / "month=1" / "rows.parquet" for year in (2021, 2022)]
    for i, part in enumerate(parts):
        part.parent.mkdir(parents=True)
        pq.write_table(WHOLE.slice(20 * i, 20), part)
    for year in (2019, 2020):  # links are not followed, which lead back here 2^40 times
        (tmp_path / "all" / f"year={year}").symlink_to(tmp_path / "all")
    for times, data in enumerate((parts[0], tmp_path / "all", parts[1]), 1):
        with sulq.connect(data, columns={"age": Int(0, 120)}, table="t", budget=Epsilon(3), renew=times > 1) as db:
            db.count(spend=Epsilon(1))
            assert (db._ledger.path, db.spent) == (parts[0].with_suffix(".ledger"), Epsilon(times))


@pytest.mark.parametrize("first", ["r/p/a.parquet", "r/p", "r/p/*.parquet", "r/y=1/a.parquet"])
def test_a_ledger_below_a_folder_is_not_the_folders_T98(first: str, tmp_path: Path) -> None:
    """A ledger in a plain subfolder is not found from the others, so it is not the whole's until it is moved (T98).

    Control: where the subfolders are partitions it is found from each. In the place it is told of it is the whole's.
    """
    other = tmp_path / "r" / ("y=2" if "=" in first else "q") / "b.parquet"
    for i, part in enumerate((tmp_path / first.replace("*", "a").removesuffix("r/p"), other)):
        file = part if part.suffix else tmp_path / "r" / "p" / "a.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(WHOLE.slice(20 * i, 20), file)
    left, ledger = asked(tmp_path / first)
    assert left == Epsilon(8)
    if "=" not in first and ledger.parent != tmp_path / "r":
        with pytest.raises(SetupError, match="would not be found from") as refused:
            asked(tmp_path / "r")
        assert refused.value.code == "bad-declaration"
        ledger = ledger.rename(tmp_path / "r.ledger")
    assert asked(tmp_path / "r") == (Epsilon(7), ledger)
    assert asked(other) == (Epsilon(6), ledger)
    assert asked(other.parent) == (Epsilon(5), ledger)


def written(folder: Path, night: int) -> None:
    """A folder's parts as they are written every night: the same people, new names, the old parts gone after."""
    folder.mkdir(exist_ok=True)
    old = [*folder.glob("*.parquet")]
    for i in range(2):
        ages = pa.array(np.arange(20) + night, pa.int64())
        pq.write_table(pa.table({"age": ages}), folder / f"part-{i}-{night}.parquet")
    for path in old:
        path.unlink()


@pytest.mark.parametrize("word", ["folder", "replaced", "pattern", "part"])
def test_parts_that_are_written_anew_have_no_second_budget_T98(word: str, tmp_path: Path) -> None:
    """The ledger covers a folder and a pattern, not only the files they stood for; a folder's lies beside it.

    Control: the same parts in another folder, whose owner names nothing of the first, have a budget of their own.
    """
    folder = tmp_path / "visits"
    ledgers = set()
    for night in range(3):
        if word == "replaced" and night:
            shutil.rmtree(folder)
        written(folder, night)
        told = {"pattern": folder / "part-*.parquet", "part": folder / f"part-0-{night}.parquet"}.get(word, folder)
        data = folder if word == "part" and not night else told
        with sulq.connect(data, columns={"age": Int(0, 120)}, table="t", budget=Epsilon(3), renew=True) as db:
            assert db.remaining == Epsilon(3 - night)
            db.count(spend=Epsilon(1), fresh=True)
            ledgers.add(db._ledger.path)
    assert ledgers == {folder / "part-0-0.ledger" if word == "pattern" else tmp_path / "visits.ledger"}
    if word != "pattern":  # and whoever else reads the folder finds the parts alone in it
        assert {path.suffix for path in folder.iterdir()} == {".parquet"}
    other = tmp_path / "elsewhere" / "other"  # beside it no ledger lies that looks for data written anew
    other.parent.mkdir()
    written(other, 9)
    with sulq.connect(other, columns={"age": Int(0, 120)}, table="t", budget=Epsilon(3)) as db:
        assert db.remaining == Epsilon(3)
        assert db._ledger.path == other.with_suffix(".ledger")


def asked(data: object, **more: object) -> tuple[sulq.Epsilon, Path]:
    """What is left for some data after an ask, and where its ledger lies."""
    with sulq.connect(data, columns={"age": Int(0, 120)}, table="t", budget=Epsilon(9), renew=True, **more) as db:
        db.count(spend=Epsilon(1), fresh=True)
        return db.remaining, db._ledger.path


@pytest.mark.parametrize("name", ["clinic.ledger", "people.ledger"])
@pytest.mark.parametrize("word", ["folder", "pattern"])
@pytest.mark.parametrize("renamed", [False, True])
def test_no_part_or_subfolder_has_a_second_budget_T98(name: str, word: str, *, renamed: bool, tmp_path: Path) -> None:
    """Whatever a folder and its ledger are called, the ledger is found from any part at any depth.

    And from parts that come later, where the folder keeps its name. Control: other data in the same folders.
    """
    folder, ledger = tmp_path / "clinic", tmp_path / name
    for i, part in enumerate(("north", "south/ward")):
        (folder / part).mkdir(parents=True)
        pq.write_table(WHOLE.slice(20 * i, 20), folder / part / "a.parquet")
    data = folder if word == "folder" else folder / "**" / "a.parquet"
    assert asked(data, ledger=ledger, new_people=True) == (Epsilon(8), ledger)
    if renamed:
        folder = folder.rename(tmp_path / "moved")
    else:
        (folder / "west").mkdir()
        pq.write_table(WHOLE.slice(41, 9), folder / "west" / "a.parquet")
    for i, part in enumerate(sorted(folder.rglob("a.parquet"))):
        assert asked(part) == (Epsilon(7 - 2 * i), ledger)
        assert asked(part.parent) == (Epsilon(6 - 2 * i), ledger)
    other = tmp_path / "other" / "deep" / "a.parquet"
    other.parent.mkdir(parents=True)
    pq.write_table(WHOLE.slice(50, 10), other)
    assert asked(other) == (Epsilon(8), other.with_suffix(".ledger"))
    with pytest.raises(SetupError, match=name) as refused:  # nor under a ledger that is named
        asked(part, ledger=tmp_path / "second.ledger")
    assert refused.value.code == "covered-source"


def test_of_a_ledger_above_that_is_damaged_nobody_can_say_whom_it_protects_T98(tmp_path: Path) -> None:
    """Data far below is refused as what lies beside it is. Control: a ledger that covers the data and is named."""
    part, own = tmp_path / "a" / "b" / "part.parquet", tmp_path / "own.ledger"
    part.parent.mkdir(parents=True)
    pq.write_table(WHOLE, part)
    assert asked(part, ledger=own, new_people=True) == (Epsilon(8), own)
    (tmp_path / "bad.ledger").write_bytes(own.read_bytes()[:5000] + bytes(5000))
    with pytest.raises(SetupError, match=r"bad\.ledger") as refused:
        asked(part)
    assert refused.value.code == "ledger-damaged"
    pq.write_table(WHOLE.slice(1), part)
    assert asked(part, ledger=own) == (Epsilon(7), own)


@pytest.mark.parametrize(
    ("pattern", "file", "held"),
    [
        ("*.csv", "a.csv", True),
        ("*.csv", "b/a.csv", False),
        ("**/*.csv", "a.csv", True),
        ("**/*.csv", "b/c/a.csv", True),
        ("*/c/a.csv", "b/c/a.csv", True),
        ("*/c/a.csv", "c/a.csv", False),
        ("b/[ab].csv", "b/a.csv", True),
        ("b/[ab].csv", "b/c.csv", False),
    ],
)
def test_a_pattern_holds_what_it_finds(pattern: str, file: str, *, held: bool, tmp_path: Path) -> None:
    """A file is held if and only if the pattern finds it; through a link to the pattern's folder too."""
    real, link = tmp_path / "real", tmp_path / "link"
    (real / file).parent.mkdir(parents=True)
    (real / file).touch()
    link.symlink_to(real)
    for root in (real, link):
        assert bool([*root.glob(pattern)]) is held
        assert Pattern(str(root / pattern)).holds(real / file) is held


def test_each_list_of_parts_has_a_copy_of_its_own(tmp_path: Path) -> None:
    """Lists that begin with the same part are other tables. Control: the same list is prepared once."""
    written(tmp_path / "v", 0)
    written(tmp_path / "v2", 1)
    a, b, c = tmp_path / "v" / "part-0-0.parquet", tmp_path / "v" / "part-1-0.parquet", tmp_path / "v2"
    shutil.move(c / "part-1-1.parquet", a.with_name("c.parquet"))
    columns = {"age": Int(0, 120)}
    for other in ([a, b], [a, a.with_name("c.parquet")], [a, b]):
        with sulq.connect(other, columns=columns, table="t", budget=Epsilon(3), renew=True) as db:
            db.prepare()
    assert len([*a.parent.glob("*.prepared")]) == 2


@pytest.mark.parametrize(
    ("told", "code", "word"),
    [
        (["s3://a/b.parquet"], "engine-not-available", "address"),
        ("v", "unreadable-data", "UTF-8"),
        ("k=1", "unreadable-data", "partition"),
    ],
)
def test_what_is_no_list_of_files_is_refused(told: object, code: str, word: str, tmp_path: Path) -> None:
    """An address in a list, a name that is no text, a partition that is said twice."""
    rows = pa.table({"age": [1]})
    (tmp_path / "v").mkdir()
    pq.write_table(rows, tmp_path / "v" / "a.parquet")
    (tmp_path / "v" / "a.parquet").rename(tmp_path / "v" / os.fsdecode(b"a\xff.parquet"))
    (tmp_path / "k=1" / "k=2").mkdir(parents=True)
    pq.write_table(rows, tmp_path / "k=1" / "k=2" / "a.parquet")
    data = told if isinstance(told, list) else tmp_path if told == "k=1" else tmp_path / told
    if told == "k=1":
        shutil.rmtree(tmp_path / "v")
    with pytest.raises(SetupError, match=word) as refusal:
        sulq.connect(data, columns={"age": Int(0, 120)}, budget=Epsilon(1))
    assert refusal.value.code == code


UNLIKE = {
    "another type": pa.table({"who": ["a"], "age": [1.5], "city": ["x"]}),
    "another order": pa.table({"age": [1], "who": ["a"], "city": ["x"]}),
    "a column less": pa.table({"who": ["a"], "age": [1]}),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_part_that_is_unlike_is_named(name: str, tmp_path: Path) -> None:
    """Nothing is read of parts that would be read otherwise than the first."""
    parts(tmp_path)
    pq.write_table(UNLIKE[name], tmp_path / "strange.parquet")
    with pytest.raises(SetupError, match="strange" if name != "a column less" else "city"):
        duck(tmp_path, None, SCHEMA)


def decimals(texts: list[str], digits: int, scale: int) -> pa.Array:
    """Numbers of one decimal type."""
    return pa.array([Decimal(text) for text in texts], pa.decimal128(digits, scale))


@pytest.mark.parametrize("column", ["who", "pay"])
@pytest.mark.parametrize(
    "other",
    [
        decimals(["5.51", "5.52", "5.53"], 38, 30),
        decimals(["5.51", "5.52", "5.53"], 10, 2),
        pa.array([5.25, 5.5, 5.75], pa.float32()),
    ],
    ids=["finer", "shorter", "float"],
)
def test_no_part_changes_another_s_persons_and_values_SR25(column: str, other: pa.Array, tmp_path: Path) -> None:
    """Parts that are read by the same words and have other types are refused: one type for both may round.

    Of DECIMAL(38, 1) and DECIMAL(38, 30) DuckDB makes DECIMAL(38, 1), in which three persons are one. Control: three
    persons in parts of one type; and floats of both widths, of which each has its value as a double.
    """
    schema = Schema.of("data", {"pay": Real(0, 8)})
    unit = Unit("who") if column == "who" else Unit()

    def put(name: str, cells: pa.Array) -> None:
        rows = {"who": pa.array(range(len(cells)), pa.int64()), "pay": pa.array([1.0] * len(cells))}
        pq.write_table(pa.table(rows | {column: cells}), tmp_path / f"{name}.parquet")

    put("b", other)
    for first in (decimals(["7.0"], 38, 1), decimals(["7.0"], 4, 1)):
        put("a", first)
        for opened in (duck, memory):
            with pytest.raises(SetupError, match=r"'b\.parquet'"):
                opened(tmp_path, unit, schema)
    asked = ask(lit(1), col("pay"), schema=schema)
    put("a", decimals(["7.0"], 38, 30))
    put("b", decimals(["5.51", "5.52", "5.53"], 38, 30))
    assert sums(duck(tmp_path, unit, schema), asked)[0][0][0] == 4
    if column == "pay":
        put("a", pa.array([0.1], pa.float64()))
        put("b", pa.array([0.1], pa.float32()))
        alone = [sums(duck(tmp_path / f"{name}.parquet", unit, schema), asked)[0][0] for name in "ab"]
        assert sums(duck(tmp_path, unit, schema), asked)[0][0] == [sum(pair) for pair in zip(*alone, strict=True)]


@pytest.mark.parametrize(
    ("one", "other"),
    [(pa.float16(), pa.float32()), (pa.decimal256(50, 2), pa.float64())],
    ids=["half", "long decimals"],
)
def test_parts_that_only_arrow_tells_apart_are_refused(one: pa.DataType, other: pa.DataType, tmp_path: Path) -> None:
    """Where a cell has parts read by Arrow they would be unlike: that is said before. Control: parts of one type."""
    schema = Schema.of("data", {"pay": Real(0, 8)})

    def put(name: str, kind: pa.DataType) -> None:
        cells = [Decimal("1.5")] if pa.types.is_decimal(kind) else np.array([1.5], kind.to_pandas_dtype())
        pq.write_table(pa.table({"pay": pa.array(cells, kind)}), tmp_path / f"{name}.parquet")

    put("a", one)
    put("b", other)
    with pytest.raises(SetupError, match=r"'b\.parquet'"):
        duck(tmp_path, None, schema)
    put("b", one)
    assert sums(duck(tmp_path, None, schema), ask(lit(1), schema=schema)) == [[[2]]]


def test_parts_with_narrower_numbers_are_read_alike_or_named(tmp_path: Path) -> None:
    """DuckDB reads whole numbers of any width as the same; the memory engine names the part, and no cell."""
    narrow = WHOLE.set_column(1, "age", WHOLE["age"].cast(pa.int16()))
    pq.write_table(WHOLE.slice(0, 30), tmp_path / "a.parquet")
    pq.write_table(narrow.slice(30), tmp_path / "b.parquet")
    assert sums(duck(tmp_path, None, SCHEMA), *ASKED) == sums(plain_engine(WHOLE, None, SCHEMA), *ASKED)
    with pytest.raises(SetupError, match=r"'b\.parquet'"):
        memory(tmp_path, None, SCHEMA)


def test_a_home_that_nobody_has_holds_no_file() -> None:
    """The owner is told that there is no file, whether one is named or a pattern."""
    for path in ("~nobody-is-called-so/rows.csv", "~nobody-is-called-so/*.csv"):
        for given in (path, [path]):
            with pytest.raises(SetupError, match="is no"):
                duck(given, None, SCHEMA)


def test_no_rows_are_left_out_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads elsewhere or nowhere, and a folder that may not be looked into, are refused by name.

    Control: without them, and with links to what is read anyway, hidden ones and a pattern that names the folder,
    all rows count.
    """
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    for folder in (root, root / "near", elsewhere):
        folder.mkdir()
    pq.write_table(WHOLE.slice(0, 30), root / "near" / "a.parquet")
    pq.write_table(WHOLE.slice(30), elsewhere / "b.parquet")
    link = root / "far"

    def rows(data: Path) -> int:
        return sums(duck(data, None, SCHEMA), ask(lit(1), schema=SCHEMA))[0][0][0]

    for target, name in ((elsewhere, "far"), (tmp_path / "nowhere", "far"), (link, "far"), (tmp_path, "far")):
        link.symlink_to(target)
        for words in (root, root / "**" / "*.parquet"):
            with pytest.raises(SetupError, match=f"{name!r}.*'root'.*leads") as refused:
                duck(words, None, SCHEMA)
            assert refused.value.code == "unreadable-data"
        link.unlink()
    (root / "c.parquet").symlink_to(elsewhere / "none.parquet")
    for words in (root, root / "*", root / "*.parquet"):
        with pytest.raises(SetupError, match=r"'c\.parquet'.*leads nowhere"):
            duck(words, None, SCHEMA)
    (root / "c.parquet").unlink()
    (root / "_hidden").symlink_to(elsewhere)
    (root / "latest").symlink_to(root / "near")
    (root / "around").symlink_to(root)
    assert rows(root) == rows(root / "**" / "*.parquet") == rows(root / "near" / "*") == 30
    link.symlink_to(elsewhere)
    assert rows(root / "[fn]*" / "*.parquet") == 60
    link.unlink()
    (root / "latest").unlink()
    looked = Path.iterdir

    def listed(folder: Path) -> object:
        if folder.name == "near":
            raise PermissionError
        return looked(folder)

    monkeypatch.setattr(Path, "iterdir", listed)
    for words in (root, root / "*" / "*.parquet"):
        with pytest.raises(SetupError, match="'near' cannot be seen") as refused:
            duck(words, None, SCHEMA)
        assert refused.value.code == "unreadable-data"


def test_what_a_pattern_finds_is_what_glob_finds(tmp_path: Path) -> None:
    """In a tree of folders, each pattern, links that a name or * stands for followed; but nothing that is hidden."""
    for folder in (".", "a", "a/b", "a/b/c", "d", "d/b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in ("x.csv", "y.csv.gz", "z.txt", "_w.csv"):
            (tmp_path / folder / name).touch()
    (tmp_path / "d" / "e").symlink_to(tmp_path / "a")
    for pattern in (
        "*",
        "*.csv",
        "*/*",
        "*/b/x.csv",
        "**/*",
        "**/b/*",
        "**/b/**/*",
        "d/*/*.csv",
        "?/[bc]/*.gz",
        "a/b/[x]*",
    ):
        want = {path for path in tmp_path.glob(pattern) if path.suffix in (".csv", ".gz") and path.name[0] != "_"}
        assert set(find_files(tmp_path / pattern).paths) == {path.resolve() for path in want} != set()


def test_an_empty_name_is_not_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a name hold a NUL, in a configuration; and what is not there may have been meant as a folder."""
    folder = tmp_path / "here"  # beside which its ledger lies
    folder.mkdir()
    monkeypatch.chdir(folder)
    parts(folder)
    for data in ("", [""], ["part0.parquet", ""], {"a": ""}):
        declared = {"age": Int(0, 120)}
        with pytest.raises(SetupError, match="is empty"):
            sulq.connect(data, columns={"a": declared} if isinstance(data, dict) else declared, budget=Epsilon(1))
    for line in ('data = ""', 'data = ["part0.parquet", ""]', r'data = "a\u0000.csv"', r'ledger = "a\u0000.ledger"'):
        more = 'data = "part0.parquet"\n' if line.startswith("ledger") else ""
        told = f"[dataset.a]\n{more}{line}\nbudget = {{ epsilon = 1 }}\n[dataset.a.columns]\nage = {{ int = [0, 9] }}\n"
        Path("sulq.toml").write_text(told, encoding="utf-8")
        with pytest.raises(SetupError, match=r"not empty and holds no NUL") as refused:
            find("a", None)
        assert refused.value.code == "bad-config"
    with pytest.raises(SetupError, match="no file or folder 'nosuch'") as refused:
        sulq.connect("nosuch", columns=declared, budget=Epsilon(1))
    assert refused.value.code == "missing-file"
    with sulq.connect(".", columns=declared, table="t", budget=Epsilon(9)) as db:
        assert abs(db.count(spend=Epsilon(9)).value - 60) < 30


def test_a_file_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Its rows would count twice: by another word, and by another name of the same file. So are kinds that differ."""
    found = parts(tmp_path)
    (tmp_path / "again.parquet").hardlink_to(found[0])
    for given in ([found[0], found[0]], [found[0], tmp_path / "part*"], tmp_path):
        with pytest.raises(SetupError, match="twice"):
            duck(given, None, SCHEMA)
    with pytest.raises(SetupError, match="another kind"):
        duck([found[0], *parts(tmp_path, "csv")], None, SCHEMA)
    for nothing in (tmp_path / "none*", [tmp_path / "none.parquet"], [tmp_path / "none"]):
        with pytest.raises(SetupError, match="no data file"):
            duck(nothing, None, SCHEMA)


@pytest.mark.parametrize("change", ["another part", "a part less", "other rows"])
def test_parts_that_change_stop_the_owner_SR12(change: str, tmp_path: Path) -> None:
    """A part that comes, goes or changes is a source that changed. Control: unchanged, the copy is used again."""
    found, copy = parts(tmp_path), tmp_path / "copy"
    duck(tmp_path, None, SCHEMA, prepared=copy).ready()
    engine = duck(tmp_path, None, SCHEMA, prepared=copy)
    engine.ready()
    if change == "another part":
        pq.write_table(WHOLE, tmp_path / "more.parquet")
    elif change == "a part less":
        found[1].unlink()
    else:
        pq.write_table(WHOLE.slice(0, 3), found[2])
    for again in (engine, duck(tmp_path, None, SCHEMA, prepared=copy)):
        with pytest.raises(SetupError) as stopped:
            again.ready()
        assert stopped.value.code == "source-changed"


def test_a_malformed_csv_part_is_named(tmp_path: Path) -> None:
    """Each part is checked by RFC 4180 before any row is read."""
    parts(tmp_path, "csv")
    (tmp_path / "strange.csv").write_text('who,age,city\na,1,"x\n', encoding="utf-8")
    with pytest.raises(SetupError, match=r"strange\.csv"):
        duck(tmp_path, None, SCHEMA)


def test_connect_takes_several_files_under_one_ledger_T98(tmp_path: Path) -> None:
    """A part alone, asked later, is under the ledger of all; an address of a file is no curator's."""
    found = parts(tmp_path)
    columns = {"age": sulq.Int(0, 120), "city": sulq.Category(("x", "y"))}
    with sulq.connect(found, columns=columns, budget=Epsilon(3), synthetic=True) as db:
        db.count(spend=Epsilon(2))
    with sulq.connect(found[2], columns=columns, budget=Epsilon(3), synthetic=True, table="one") as db:
        assert db.facts.spent == Epsilon(2)
    with sulq.connect(
        {"one": tmp_path / "part*", "two": found[0]},
        columns={"one": columns, "two": columns},
        unit=Unit("who", rows=2),
        budget=Epsilon(3),
        synthetic=True,
        ledger=tmp_path / "new.ledger",
        new_people=True,
    ) as db:
        db.sql("SELECT COUNT(*) FROM one", spend=Epsilon(1))


@pytest.mark.parametrize(
    "address", ["https://example.org/rows.parquet", "HTTPS://example.org/rows.csv?v=1#top", "s3://a/b.duckdb"]
)
def test_a_file_behind_an_address_is_no_curator_at_any_door(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, as one of several tables, in a list, in a configuration and on the command line. Control: a curator is."""
    columns = {"age": sulq.Int(0, 120)}
    for data, declared in ((address, columns), ([address], columns), ({"a": address}, {"a": columns})):
        with pytest.raises(SetupError, match="Download it") as refused:
            sulq.connect(data, columns=declared, budget=Epsilon(1))
        assert refused.value.code == "engine-not-available"
    monkeypatch.chdir(tmp_path)
    declared_too = "budget = { epsilon = 1 }\n[dataset.a.columns]\nage = { int = [0, 9] }\n"
    for data in (f'"{address}"', f'["{address}"]'):
        Path("sulq.toml").write_text(f"[dataset.a]\ndata = {data}\n{declared_too}", encoding="utf-8")
        with pytest.raises(SetupError, match="Download it"):
            find("a", None)
    with pytest.raises(SetupError, match="Download it"):
        asked_of(address, None)
    Path("sulq.toml").write_text(f'[dataset.a]\ndata = "https://example.org/rows"\n{declared_too}', encoding="utf-8")
    assert address_of("a", None) == address_of("https://example.org/rows", None) == "https://example.org/rows"


def test_files_travel_between_processes(tmp_path: Path) -> None:
    """As JSON, with nothing looked up on the way; found again they are what the same words stand for by then."""
    parts(tmp_path, "csv")
    found = find_files(tmp_path)
    assert Files.from_json(json.loads(json.dumps(found.to_json()))) == found == found.again()
    (tmp_path / "year=1").mkdir()
    assert found.listed == [tmp_path]
    parts(tmp_path, "csv", (60,))[0].rename(tmp_path / "part9.csv")
    assert [path.name for path in found.again().paths] == ["part1.csv", "part2.csv", "part3.csv", "part9.csv"]
    with pytest.raises(SetupError, match="no longer there"):
        Origin.of(found)


def test_no_part_leads_out_of_a_folder_T70(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at first, and not when found again: a link that comes later is refused. Control: without `within`."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    parts(root, "csv", (60,))
    parts(outside, "csv", (59, 1))
    found = find_files(root / "*.csv", within=root)
    assert [path.name for path in found.again().paths] == ["part0.csv"]
    (root / "part1.csv").symlink_to(outside / "part1.csv")
    origin = Origin.of(found)
    for look in (
        found.again,
        lambda: find_files(root, within=root),
        lambda: find_files([root / "part1.csv"], within=root),
    ):
        with pytest.raises(SetupError, match="no such data file"):
            look()
    with pytest.raises(SetupError, match="changed"):
        origin.unchanged()
    for words in (outside, root / ".." / "outside", root / "*" / ".." / ".." / "outside" / "*", outside / "*"):
        with pytest.raises(SetupError, match="no such data file"):
            find_files(words, within=root)
    assert len(find_files(root).paths) == 2
    (root / "part1.csv").unlink()
    (root / "away").symlink_to(outside)
    looked, listed = Path.iterdir, []
    monkeypatch.setattr(Path, "iterdir", lambda folder: [listed.append(folder.resolve()), looked(folder)][1])
    for words in (root, root / "*" / "*.csv", root / "away" / "*.csv", root / "**" / "*.csv", root / "away"):
        with pytest.raises(SetupError, match="no such data file"):
            find_files(words, within=root)
    assert outside not in listed
    assert len(find_files(root / "a*" / "*.csv").paths) == 2
    assert outside in listed


def test_a_pattern_whose_files_move_to_other_folders_needs_a_named_ledger_T98(tmp_path: Path) -> None:
    """Beside one of its files a ledger is not found from the next folder. Control: a wildcard in names alone."""
    for month in ("2026-01", "2026-02"):
        folder = tmp_path / "in" / month
        folder.mkdir(parents=True)
        pq.write_table(WHOLE.slice(0, 20), folder / "a.parquet")
        data, ledger = tmp_path / "in" / "*" / "*.parquet", tmp_path / "people.ledger"
        with pytest.raises(SetupError, match="ledger named by you"):
            asked(data)
        assert asked(data, ledger=ledger)[0] == Epsilon(8 if month == "2026-01" else 7)
        (folder / "a.parquet").rename(tmp_path / "gone.parquet")
        folder.rmdir()
    (tmp_path / "one").mkdir()
    pq.write_table(WHOLE.slice(30, 20), tmp_path / "one" / "a.parquet")
    assert asked(tmp_path / "one" / "*.parquet")[0] == Epsilon(8)


def test_later_files_of_a_linked_folder_have_no_second_budget_T98(tmp_path: Path) -> None:
    """A pattern enters folders by links: what comes there later is known from there too. Control: other endings."""
    for name in ("real", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "n").symlink_to(tmp_path / "real")
    pq.write_table(WHOLE.slice(0, 20), tmp_path / "real" / "a.parquet")
    ledger = tmp_path / "people.ledger"
    assert asked(tmp_path / "data" / "*" / "a*.parquet", ledger=ledger) == (Epsilon(8), ledger)
    pq.write_table(WHOLE.slice(20, 20), tmp_path / "real" / "a2.parquet")
    assert asked(tmp_path / "real" / "a2.parquet") == (Epsilon(7), ledger)
    pq.write_table(WHOLE.slice(40, 20), tmp_path / "real" / "b.parquet")
    assert asked(tmp_path / "real" / "b.parquet")[0] == Epsilon(8)


def test_a_link_is_passed_over_only_where_its_folder_is_read_T70(tmp_path: Path) -> None:
    """A folder that another pattern of names leaves out is not read anyway. Control: one below the same `**`."""
    for name in ("x1/deep", "y/sub"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(WHOLE.slice(0, 20), tmp_path / name / "a.parquet")
    (tmp_path / "x1" / "l").symlink_to(tmp_path / "x1" / "deep")
    assert len(find_files(tmp_path / "x?" / "**" / "*.parquet").paths) == 1
    (tmp_path / "x1" / "l").unlink()
    (tmp_path / "x1" / "l").symlink_to(tmp_path / "y" / "sub")
    with pytest.raises(SetupError, match="leads elsewhere"):
        find_files(tmp_path / "x?" / "**" / "*.parquet")


def test_what_is_no_ledger_above_stops_nobody(tmp_path: Path) -> None:
    """A folder that is called like a ledger; a damaged file does (above)."""
    (tmp_path / "books.ledger").mkdir()
    (tmp_path / "deep").mkdir()
    pq.write_table(WHOLE.slice(0, 20), tmp_path / "deep" / "a.parquet")
    assert asked(tmp_path / "deep" / "a.parquet")[0] == Epsilon(8)
