"""A registration under way: kinds from types alone, bounds asked for, warnings where they are due."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sulq import Epsilon, EpsilonDelta, Int, Rho, Unit, connect
from sulq.answers import wire
from sulq.language.privacy import DELTA_SHARES
from sulq.service.console.guard import Fields
from sulq.service.console.pages.register import RegistrationDraft
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


TABLES = {
    "file": ["people.csv", "stays.csv", "regions.csv"], "name": "clinic", "columns": "6", "tables": "3",
    "n0": "pid", "t0": "text", "k0": "skip", "n1": "age", "t1": "text", "k1": "int", "a1": "0", "b1": "120",
    "n2": "pid", "t2": "text", "k2": "skip", "g2": "1", "n3": "days", "t3": "text", "k3": "int", "a3": "0", "b3": "9",
    "g3": "1", "n4": "code", "t4": "text", "k4": "int", "a4": "0", "b4": "9", "g4": "2",
    "n5": "junk", "t5": "text", "k5": "skip", "g5": "2",
    "T0": "people", "F0": "people.csv", "K0": "pid", "T1": "stays", "F1": "stays.csv", "T2": "regions",
    "F2": "regions.csv", "P2": "yes", "K2": "code", "person": "pid", "rows": "2",
}  # fmt: skip


def of_tables(**more: object) -> RegistrationDraft:
    told = TABLES | more
    pairs = [(name, each) for name, value in told.items() for each in (value if isinstance(value, list) else [value])]
    return RegistrationDraft.of(Fields(pairs))


def test_several_files_are_tables_of_one_registration() -> None:
    """Each with its file, columns, key and whether it is public, on every step; one without a column is left out."""
    found = of_tables()
    assert found.reach("review") == "review"
    tables = found.body()["tables"]
    assert {name: sorted(table) for name, table in tables.items()} == {
        "people": ["columns", "file", "key", "public"], "stays": ["columns", "file", "public"],
        "regions": ["columns", "file", "key", "public"],
    }  # fmt: skip
    assert (tables["regions"]["public"], list(tables["regions"]["columns"])) == (True, ["code"])
    assert not found.body().keys() & {"file", "columns", "size"}
    again = RegistrationDraft.of(Fields(found.hidden("review")))
    assert again.body() == found.body()
    assert list(of_tables(k3="skip").body()["tables"]) == ["people", "regions"]
    assert of_tables(T1="people").reach("review") == "columns"
    assert of_tables(k1="skip", k3="skip").warnings() == ["All of these tables are public: there is nobody to protect."]


def clinic(folder: Path) -> None:
    (folder / "people.csv").write_text("pid,age\na,41\nb,130\n", encoding="utf-8")
    (folder / "stays.csv").write_text("pid,days\na,3\na,4\na,5\n,1\n", encoding="utf-8")
    (folder / "regions.csv").write_text("code,junk\n1,x\n2,y\n", encoding="utf-8")


def test_an_owner_is_shown_how_the_rows_fit_before_registering_SR28(tmp_path: Path) -> None:
    """Exact counts on the page when they are asked for, of every table; carried by no form, and noted as a look.

    Control: the step without counting has none, and leaves no note.
    """
    with Visitor(Office(tmp_path, survey=survey())) as visitor:
        visitor.sign_in("owner")
        clinic(tmp_path)
        plain = shown(visitor.send("/register/check", **TABLES))
        assert "Count now" in plain.words
        assert not list(tmp_path.glob("*.looked"))
        reply = visitor.send("/register/check?count=yes", **TABLES)
        page = shown(reply)
        for said in (
            "not to be published",
            "people : 2 rows of 2 persons",
            "stays : 4 rows of 1 person",
            "as pid names nobody: 1 row.",
        ):
            assert said in page.words
        assert "of 1 person with more than the 2 that are kept of each: 1 row." in page.words
        assert [path.name for path in tmp_path.glob("*.looked")] == ["people.looked"]
        sent = [given for tag, given in page.tags if tag == "input"]
        assert not [
            given for given in sent if given.get("name", "") not in dict(of_tables().hidden("check")) | {"form": 1}
        ]


@pytest.mark.parametrize("who", ["analyst", "auditor"])
def test_nobody_else_comes_to_the_counts_T33(tmp_path: Path, who: str) -> None:
    """Neither by the console's step nor by the API; control: the owner does, in the test above."""
    with Visitor(Office(tmp_path, survey=survey())) as visitor:
        visitor.sign_in(who)
        clinic(tmp_path)
        for path in ("/register/check?count=yes", "/register/check"):
            reply = visitor.send(path, **TABLES)
            assert reply.status_code == 404
            assert "rows of" not in shown(reply).words
        headers = {"Authorization": f"Bearer {visitor.office.tokens[who]}"}
        found = visitor.request("POST", "/v1/check", json=of_tables().body(), headers=headers)
        assert found.status_code == 403
        assert not list(tmp_path.glob("*.looked"))


def test_ticked_files_are_looked_at_each_and_registered_as_tables(tmp_path: Path) -> None:
    """From the first page to the API's body; an age of a CSV file is a whole number, an unknown one is chosen."""
    with Visitor(Office(tmp_path, survey=survey())) as visitor:
        visitor.sign_in("owner")
        clinic(tmp_path)
        files = {"file": TABLES["file"], "name": "clinic"}
        page = visitor.send("/register/columns?look=yes", **files)
        assert "Table people" in shown(page).words
        chosen = {given["value"] for tag, given in shown(page).tags if tag == "option" and "selected" in given}
        assert {"int", "skip", ""} <= chosen
        declared = []
        visitor.office.hold = lambda told: declared.append(told) or True
        assert "clinic is registered" in shown(visitor.send("/register", **TABLES)).words
        assert [table.facts.schema.table for table in declared[0].tables] == ["people", "stays", "regions"]
        assert [table.facts.public for table in declared[0].tables] == [False, False, True]
