"""The text of new declarations."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sulq.api.owner import OfferedColumns
from sulq.cli.config import read
from sulq.cli.setup.declaration_text import FORMS, SetupAnswers, declaration_text, key_of, quoted

ODD = ['a"b', "c\\d", "e\nf", "g h", "?", "#x", "ü", "\x7f", "a.b", ""]


@pytest.mark.parametrize("name", ODD)
def test_every_name_is_written_as_toml_reads_it(name: str) -> None:
    """As a key and as a text."""
    assert tomllib.loads(f"{key_of(name)} = {quoted(name)}") == {name: name}


def test_blanks_filled_in_make_a_file_that_is_read(tmp_path: Path) -> None:
    """Each kind of column in its form, whatever the columns are called; nothing else need be written."""
    columns = [("age", "int64"), ("pay", "double"), ("ok", "bool"), ("city", "string"), ("day", "date32"),
               ("at", "timestamp"), ("pid", "text"), ("pid_2", "BLOB"),
               *((name, "string") for name in ODD if name)]  # fmt: skip
    place = tmp_path / "a.sulq.toml"
    told = {("a", name): '["x", "y"]' for name, kind in columns if kind == "string"}
    answers = SetupAnswers(person="pid", rows="2", budget={"epsilon": "1", "delta": "1e-6"}, columns=told)
    text = declaration_text([OfferedColumns("a", tmp_path / "a.parquet", columns)], place, answers, "pid")
    assert 'data = "a.parquet"' in text
    for form, ends in (("int", "0, 9"), ("real", "0, 9"), ("date", '"2024-01-01", "2024-12-31"')):
        text = text.replace(f"{form} = [?, ?]", f"{form} = [{ends}]")
    text = text.replace("timestamp = [?, ?]", 'timestamp = ["2024-01-01", "2024-12-31"]')
    place.write_text(text, encoding="utf-8")
    found = read(place).datasets["a"]
    assert list(found.columns) == [name for name, _ in columns if not name.startswith("pid")]
    assert (found.unit.column, found.unit.rows) == ("pid", 2)


def test_each_kind_of_column_has_a_form() -> None:
    """And the form is of that kind."""
    assert all(form.startswith(f"{{ {kind} = ") for kind, (form, _) in FORMS.items())
