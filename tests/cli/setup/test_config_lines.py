"""Refusals of a configuration point at the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.cli.config import read
from sulq.cli.setup.config_lines import unfilled
from sulq.errors import SetupError

GOOD = """[dataset]
data = "a.csv"   # is it "a?"?
unit = { column = "pid", rows = 2 }
budget = { epsilon = 1 }

[dataset.columns]
age = { int = [0, 120] }
"what?" = { category = ["why?", 'who?'] }
"""
SEVERAL = """[dataset]
budget = { epsilon = 1 }
[dataset.tables.people]
data = "p.csv"
[dataset.tables.people.columns]
age = { int = [0, 120] }
[dataset.tables.stays]
data = "s.csv"
[dataset.tables.stays.columns]
age = { int = [9, 1] }
"""


def test_a_blank_is_named_with_its_line() -> None:
    """The first that is left; control: question marks in texts and comments are none."""
    assert unfilled(GOOD, Path("a")) is None
    found = unfilled(GOOD.replace("[0, 120]", "[0, ?]"), Path("a.sulq.toml"))
    assert found is not None
    assert found.message == "a.sulq.toml, line 7 is still to be filled in: age = { int = [0, ?] }"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[0, 120]", "[120, 0]", 7, "age"),
        ("[0, 120]", "[?, 120]", 7, "still to be filled in"),
        ("rows = 2", "rows = 0", 3, "rows"),
        ("epsilon = 1", "epsilon = -1", 4, "epsilon"),
        ('["why?",', '["who?",', 8, "what?"),
        ("data =", "date =", 2, "nearest setting is 'data'"),
        ("budget = { epsilon = 1 }", "", 0, "needs 'budget'"),
    ],
)
def test_a_refusal_names_the_line_of_what_it_refuses(old: str, new: str, line: int, words: str, tmp_path: Path) -> None:
    """Of a column, the unit or the budget; where it is about no line it names none. Control: the file as it was."""
    path = tmp_path / "a.sulq.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert list(read(path).datasets["a"].columns) == ["age", "what?"]
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(SetupError) as refused:
        read(path)
    assert words in refused.value.message
    assert (f"line {line}" in refused.value.message) == bool(line)


def test_of_several_tables_the_line_is_the_tables_own(tmp_path: Path) -> None:
    """A column of the same name in another table is passed over."""
    path = tmp_path / "a.sulq.toml"
    path.write_text(SEVERAL, encoding="utf-8")
    with pytest.raises(SetupError, match="line 10"):
        read(path)
