"""Rows that are registered again, alone or with others, are under the ledger they were charged to (T56)."""

from __future__ import annotations

from pathlib import Path

import pytest

import sulq
from sulq.errors import SetupError
from sulq.service.clerk.ledger_places import placed, rows_of
from sulq.service.clerk.registration import declare
from sulq.service.settings import DatasetSettings, Service


def several(folder: Path, *names: str, public: tuple[str, ...] = ()) -> DatasetSettings:
    """A dataset of tables of these names, each in a file of its own."""
    return declare(
        "several", {name: folder / "data" / f"{name}.csv" for name in names},
        {name: {"x": sulq.Int(0, 9)} for name in names}, unit=sulq.Unit("pid"), budget=sulq.Epsilon(1), public=public,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    return tmp_path.resolve()


def test_new_data_begins_a_ledger_beside_it_and_public_tables_have_none(folder: Path) -> None:
    """Beside the first table that is not public; its copy lies there too."""
    found = placed(several(folder, "codes", "people", public=("codes",)), Service(folder), {})
    assert found.ledger == str(folder / "data" / "people.ledger")
    assert found.prepared == folder / "data" / "people.several.prepared"
    assert rows_of(found) == [str(folder / "data" / "people.csv")]


def test_rows_keep_their_ledger_however_they_are_grouped_T56(folder: Path) -> None:
    """What was noted for one of several tables holds for all of them, and for each of them alone."""
    first = placed(several(folder, "people", "visits"), Service(folder), {})
    noted = dict.fromkeys(rows_of(first), first.ledger)
    for names in (("visits",), ("visits", "people"), ("orders", "visits")):
        assert placed(several(folder, *names), Service(folder), noted).ledger == first.ledger
    assert placed(several(folder, "orders"), Service(folder), noted).ledger != first.ledger  # control
    (folder / "data" / "visits.ledger").touch()  # the library's, say
    assert placed(several(folder, "orders", "visits"), Service(folder), {}).ledger.endswith("visits.ledger")
    with pytest.raises(SetupError) as refused:
        placed(several(folder, "people", "visits"), Service(folder), noted)
    assert refused.value.code == "bad-declaration"


def test_ledgers_in_a_folder_of_their_own_go_by_the_data(folder: Path) -> None:
    """Files of one name in two folders have two ledgers; no copy of rows lies among them; a name is no matter."""
    service = Service(folder, data_root=folder / "data", ledgers=folder / "books")
    data = [folder / "data" / "a.csv", folder / "data" / "deep" / "a.csv"]
    made = [declare("a", file, {"x": sulq.Bool()}, budget=sulq.Epsilon(1)) for file in data]
    found = [placed(one, service, {}) for one in made]
    assert [Path(one.ledger).name for one in found] == ["a.ledger", "deep%2Fa.ledger"]
    assert {Path(one.ledger).parent for one in found} == {folder / "books"}
    assert [one.prepared.parent for one in found] == [file.parent for file in data]
    other = declare("other", data[0], {"x": sulq.Bool()}, budget=sulq.Epsilon(1))
    assert placed(other, service, {}).ledger == found[0].ledger


def test_a_ledger_beside_the_data_is_not_forgotten_T56(folder: Path) -> None:
    """With a folder for ledgers, one that lies beside the data is the owner's to move; where it is noted it is used."""
    service = Service(folder, data_root=folder / "data", ledgers=folder / "books")
    made = several(folder, "people")
    (folder / "data" / "people.ledger").touch()
    with pytest.raises(SetupError) as refused:
        placed(made, service, {})
    assert refused.value.code == "bad-declaration"
    assert "people.ledger" in refused.value.remedy
    noted = {str(folder / "data" / "people.csv"): made.ledger}
    assert placed(made, service, noted).ledger == made.ledger


@pytest.mark.parametrize("where", ["all.ledger", "all/year=1/p.ledger"])
def test_a_part_of_a_partitioned_table_is_under_the_ledger_of_the_whole_T98(folder: Path, where: str) -> None:
    """It lies beside the whole or beside another part; a server with a folder for ledgers has its owner move it."""
    root = folder / "data" / "all"
    for part in range(2):
        (root / f"year={part}").mkdir(parents=True)
        (root / f"year={part}" / "p.csv").write_text("pid,x\n" + "".join(f"{part}{i},1\n" for i in range(9)))
    options = {"columns": {"x": sulq.Int(0, 9)}, "unit": sulq.Unit("pid"), "budget": sulq.Epsilon(1)}
    sulq.connect(root, prepared=False, ledger=folder / "data" / where, **options).close()
    made = declare("part", root / "year=0" / "p.csv", options.pop("columns"), **options)
    assert placed(made, Service(folder), {}).ledger == str(folder / "data" / where)
    with pytest.raises(SetupError, match=f"move {Path(where).name} there"):
        placed(made, Service(folder, data_root=folder / "data", ledgers=folder / "books"), {})


def test_a_ledger_beside_the_data_under_another_name_is_not_forgotten_T98(folder: Path) -> None:
    """With a folder for ledgers: one that covers the file, or cannot be read. Control: a file it does not cover."""
    service = Service(folder, data_root=folder / "data", ledgers=folder / "books")
    for name in ("people", "visits"):
        (folder / "data" / f"{name}.csv").write_text("pid,x\n" + "".join(f"{name}{i},1\n" for i in range(9)))
    options = {"columns": {"x": sulq.Int(0, 9)}, "unit": sulq.Unit("pid"), "budget": sulq.Epsilon(1)}
    sulq.connect(folder / "data" / "people.csv", prepared=False, **options).close()
    (folder / "data" / "people.csv").rename(folder / "data" / "persons.csv")
    with pytest.raises(SetupError, match=r"move people\.ledger there as persons\.ledger"):
        placed(several(folder, "persons"), service, {})
    assert placed(several(folder, "visits"), service, {}).ledger == str(folder / "books" / "visits.ledger")
    (folder / "data" / "people.ledger").write_bytes(b"")
    with pytest.raises(SetupError, match="cannot be seen"):
        placed(several(folder, "persons"), service, {})
