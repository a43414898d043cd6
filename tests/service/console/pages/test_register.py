"""A registration under way: kinds from types alone, bounds asked for, warnings where they are due."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sulq import Bool, Category, Date, Epsilon, EpsilonDelta, Int, Real, Rho, Text, Timestamp, Unit, connect
from sulq.answers import wire
from sulq.language.privacy import DELTA_SHARES
from sulq.service.console.guard import Fields
from sulq.service.console.pages.register import ColumnDraft, RegistrationDraft, looked, suggested
from sulq.service.console.views import words
from sulq.service.settings import Service
from tests.service.console.visiting import Visitor, shown
from tests.service.office import Office, survey

GIVEN = {
    "file": "f.parquet", "name": "f", "columns": "2", "n0": "who", "t0": "BIGINT", "k0": "skip", "n1": "age",
    "t1": "INTEGER", "k1": "int", "a1": "0", "b1": "110", "whose": "column", "person": "who", "rows": "4",
    "neighbors": "add_remove", "way": "epsilon", "epsilon": "1",
}  # fmt: skip


def draft(**more: str) -> RegistrationDraft:
    return RegistrationDraft.of(Fields(list((GIVEN | more).items())))


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("BIGINT", "int"), ("UTINYINT", "int"), ("int32", "int"), ("DOUBLE", "real"), ("DECIMAL(10,2)", "real"),
        ("float", "real"), ("BOOLEAN", "bool"), ("bool", "bool"), ("VARCHAR", "category"), ("string", "category"),
        ("DATE", "date"), ("date32[day]", "date"), ("TIMESTAMP WITH TIME ZONE", "timestamp"), ("BLOB", "skip"),
    ],
)  # fmt: skip
def test_a_kind_is_suggested_from_the_type(kind: str, found: str) -> None:
    """The schema's type suggests a kind; an unknown type is left out."""
    assert suggested(kind) == found
    (column,) = looked({"columns": [{"name": "c", "type": kind}]})
    assert (column.kind, column.low, column.high, column.values) == (found, "", "", "")


@pytest.mark.parametrize(
    ("one", "column"),
    [
        (ColumnDraft("c", "INT", "int", "0", "1,000"), Int(0, 1000)),
        (ColumnDraft("c", "DOUBLE", "real", "-1.5", "2"), Real(-1.5, 2.0)),
        (ColumnDraft("c", "VARCHAR", "category", values="a\n\n b \n"), Category(["a", "b"])),
        (ColumnDraft("c", "INTEGER", "category", values="1\n2"), Category([1, 2])),
        (ColumnDraft("c", "VARCHAR", "category", values="1\n2"), Category(["1", "2"])),
        (ColumnDraft("c", "DATE", "date", "2020-01-01", "2021-01-01"), Date("2020-01-01", "2021-01-01")),
        (ColumnDraft("c", "TIMESTAMP", "timestamp", "2020-01-01", "2021-01-01"), Timestamp("2020-01-01", "2021-01-01")),
        (ColumnDraft("c", "BOOLEAN", "bool"), Bool()),
        (ColumnDraft("c", "VARCHAR", "text"), Text()),
        (ColumnDraft("c", "VARCHAR", "text", longest="2,000"), Text(2000)),
        (ColumnDraft("c", "X", "skip"), None),
    ],
)
def test_a_column_is_declared_as_it_is_written(one: ColumnDraft, column: object) -> None:
    """The form's texts become the declaration they say."""
    assert one.column() == column
    assert one.problem == ""


@pytest.mark.parametrize(
    "one",
    [
        ColumnDraft("c", "INT", "int", "0", ""),
        ColumnDraft("c", "INT", "int", "a", "b"),
        ColumnDraft("c", "INT", "int", "9", "0"),
        ColumnDraft("c", "DOUBLE", "real", "nan", "1"),
        ColumnDraft("c", "DATE", "date", "soon", "later"),
        ColumnDraft("c", "VARCHAR", "category", values="\n"),
        ColumnDraft("c", "VARCHAR", "category", values="a\na"),
        ColumnDraft("c", "VARCHAR", "text", longest="20,000"),
        ColumnDraft("c", "VARCHAR", "text", longest="long"),
    ],
)
def test_what_is_not_right_says_so(one: ColumnDraft) -> None:
    """No declaration is guessed: what is missing or wrong is said beside the column."""
    assert one.column() is None
    assert one.problem


def test_the_first_step_that_is_not_right_is_shown() -> None:
    """Nobody passes a step that is not right, whatever address is asked for."""
    assert draft().reach("review") == "review"
    assert draft(b1="").reach("review") == "columns"
    assert draft(k1="skip").reach("unit") == "columns"
    assert draft(person="nobody").reach("review") == "unit"
    assert draft(rows="0").reach("budget") == "unit"
    assert draft(neighbors="friends").reach("budget") == "unit"
    assert draft(fold="upper").reach("budget") == "unit"
    assert draft(fold="case").unit().fold == "case"
    assert ("fold", "case") in draft(fold="case").hidden("budget")
    assert draft(epsilon="-1").reach("review") == "budget"
    assert draft(size="many").reach("review") == "budget"
    assert draft(b1="").reach("file") == "file"


def test_what_was_said_is_carried_along() -> None:
    """Every step's form carries what the other steps said."""
    for step in ("columns", "unit", "budget", "review"):
        carried = dict(draft().hidden(step))
        again = RegistrationDraft.of(Fields(list((GIVEN | carried).items())))
        assert again.body() == draft().body()


@pytest.mark.parametrize(
    ("several", "file"),
    [
        ("", "survey.parquet"),
        (" \r\n", "survey.parquet"),
        ("visits/*.csv", "visits/*.csv"),
        ("a b\r\nc\n", ["a b", "c"]),
    ],
)
def test_several_files_are_one_table(several: str, file: object) -> None:
    """A folder, a pattern or a list stands in place of the file, on every step."""
    found = draft(file="survey.parquet", several=several)
    again = RegistrationDraft.of(Fields(list((GIVEN | dict(found.hidden("review"))).items())))
    assert found.body()["file"] == again.body()["file"] == file


def test_the_body_is_the_api_s_own() -> None:
    """Columns, unit and budget travel in the canonical JSON."""
    body = draft(size="1000").body()
    assert body["columns"] == {"age": {"kind": "Int", "lo": 0, "hi": 110}}
    assert body["unit"] == {"kind": "Unit", "column": "who", "rows": 4, "neighbors": "add_remove", "fold": None}
    assert body["budget"] == {"kind": "Epsilon", "epsilon": 1.0}
    assert body["size"] == 1000
    assert draft(whose="row").unit() == Unit()
    assert draft(way="rho", rho="0.2").budget() == Rho(0.2)
    assert draft(way="both", delta="1e-6").budget() == EpsilonDelta(1, 1e-6)
    assert draft().budget() == Epsilon(1)


@pytest.mark.parametrize("share", DELTA_SHARES)
def test_a_part_of_delta_may_be_set(share: str) -> None:
    """It travels as a number where there is a delta; what is no part stops at the budget, and none is the default."""
    told = draft(way="both", **{share: "0.3"})
    assert (told.reach("review"), told.body()[share]) == ("review", 0.3)
    assert (share, "0.3") in told.hidden("review")
    assert draft(way="both", **{share: "0"}).body()[share] == 0
    for odd in ("0.95", "-1", "much"):
        assert draft(way="both", **{share: odd}).reach("review") == "budget"
    for none in (draft(way="both"), draft(**{share: "0.3"})):
        assert none.reach("review") == "review"
        assert share not in none.body()


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"way": "both", "delta": "0.01", "size": "100"}, "1/size"),
        ({"way": "both", "delta": "0.01"}, "well below"),
        ({"epsilon": "25"}, "past epsilon 20"),
        ({"epsilon": "8"}, "is a lot"),
        ({"whose": "row"}, "two rows"),
        ({"k0": "int", "a0": "0", "b0": "9"}, "person's own column"),
    ],
)
def test_a_careless_declaration_is_warned_of_T93(more: dict[str, str], word: str) -> None:
    """A delta of 1/n, an epsilon over policy and a unit that hides too little are said before the end."""
    assert any(word in warning for warning in draft(**more).warnings())
    assert draft(way="both", delta="1e-9", size="100").warnings() == []


def test_a_column_may_be_never_missing() -> None:
    """The form says so, and what a missing cell counts as; a default of another kind is a problem of its column."""
    made = [
        (ColumnDraft("c", "INT", "int", "0", "9", never=True, default="4"), Int(0, 9, missing=False, default=4)),
        (ColumnDraft("c", "DOUBLE", "real", "0", "9", never=True), Real(0.0, 9.0, missing=False)),
        (ColumnDraft("c", "BOOL", "bool", never=True, default="True"), Bool(missing=False, default=True)),
        (ColumnDraft("c", "INTEGER", "category", values="1\n2", never=True, default="2"),
         Category([1, 2], missing=False, default=2)),
        (ColumnDraft("c", "TEXT", "text", never=True, default="none"), Text(missing=False, default="none")),
    ]  # fmt: skip
    for declared, column in made:
        assert declared.column() == column, declared.problem
    for wrong in (
        ColumnDraft("c", "INT", "int", "0", "9", never=True, default="40"),
        ColumnDraft("c", "INT", "int", "0", "9", never=True, default="x"),
        ColumnDraft("c", "INT", "int", "0", "9", default="4"),
        ColumnDraft("c", "BOOL", "bool", never=True, default="yes"),
    ):
        assert wrong.column() is None
        assert wrong.problem


def test_the_number_of_rows_may_be_left_to_a_choice() -> None:
    """Who writes "auto" is told what that costs, and the API is told so."""
    told = draft(rows="auto")
    assert told.reach("review") == "review"
    assert wire.from_json(told.body()["unit"]) == Unit("who", rows="auto")
    assert any("0.05 of the budget" in warning for warning in told.warnings())
    assert "will choose" in words.whom(told.unit())
    assert draft(rows="automatic").reach("budget") == "unit"


def test_what_was_chosen_is_shown_to_its_owner(tmp_path: Path) -> None:
    """The page after a registration has the table of the trade-off, and so has the dataset's own."""
    frame = pa.table({"who": [i % 400 for i in range(4000)], "age": [30] * 4000})
    data = connect(
        frame,
        table="f",
        columns={"age": Int(0, 110)},
        unit=Unit("who", rows="auto"),
        budget=Epsilon(50),
        synthetic=True,
    )
    with Visitor(Office(tmp_path, f=data)) as visitor:
        visitor.sign_in("owner")
        (tmp_path / "f.parquet").write_bytes(b"")
        declared = []
        visitor.office.hold = lambda told: declared.append(told) or True
        pages = [visitor.send("/register", **GIVEN | {"rows": "auto"}), visitor.get("/datasets/f")]
        for page in map(shown, pages):
            assert f"At most {data.facts.unit.rows} rows of a person are kept" in page.words
            assert f"{data.facts.unit.rows} (chosen)" in page.words
        assert declared[0].unit == Unit("who", rows="auto")


def test_an_anchor_is_named_on_the_page_and_reaches_the_dataset(tmp_path: Path) -> None:
    """It is carried to the last look and registered in the server's folder; where there is none the page says so.

    Control: a form that leaves it empty registers without one.
    """
    assert "anchor" not in draft().body()
    with Visitor(Office(tmp_path, survey=survey())) as visitor:
        visitor.sign_in("owner")
        (tmp_path / "f.parquet").write_bytes(b"")
        declared = []
        visitor.office.hold = lambda told: declared.append(told) or True
        told = GIVEN | {"anchor": "f.anchor"}
        assert "f.anchor" in shown(visitor.send("/register/review", **told)).words
        refused = visitor.send("/register", **told)
        assert "no folder for anchors" in shown(refused).words
        assert declared == []
        visitor.office.service = Service(tmp_path, anchors=tmp_path / "anchors")
        for form in (told, GIVEN):
            visitor.send("/register", **form)
        assert [found.anchor for found in declared] == [tmp_path / "anchors" / "f.anchor", None]
