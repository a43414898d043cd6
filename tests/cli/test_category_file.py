"""Lists of categories from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import sulq
from sulq.cli.category_file import read_values
from sulq.cli.config import read
from sulq.errors import SetupError

CONFIG = """[dataset]
data = "survey.parquet"
budget = { epsilon = 1 }
[dataset.columns]
code = { category_file = "lists/codes.txt", missing = false }
"""


@pytest.mark.parametrize("written", ['b\n a\nc, "d"', 'b\n a\nc, "d"\n', '\ufeffb\r\n a\r\nc, "d"\r\n'])
def test_a_line_is_a_value_as_it_stands(tmp_path: Path, written: str) -> None:
    """In the order of the file, with its blanks and quotes; the configuration's other words go with it."""
    file = tmp_path / "lists" / "codes.txt"
    file.parent.mkdir()
    file.write_bytes(written.encode())
    assert read_values(file) == ("b", " a", 'c, "d"')
    path = tmp_path / "survey.sulq.toml"
    path.write_text(CONFIG, encoding="utf-8")
    assert read(path).datasets["survey"].columns["code"] == sulq.Category(["b", " a", 'c, "d"'], missing=False)


@pytest.mark.parametrize(
    ("written", "said"),
    [(b"a\n\nb\n", "Line 2"), (b"", "Line 1"), (b"a\n\n", "Line 2"), (b"\xff", "UTF-8"), (None, "cannot be read")],
)
def test_what_is_no_list_is_refused(tmp_path: Path, written: bytes | None, said: str) -> None:
    """An empty line is no value, and a file that is not there no list. Control: above."""
    file = tmp_path / "codes.txt"
    if written is not None:
        file.write_bytes(written)
    with pytest.raises(SetupError, match=said):
        read_values(file)


def test_a_value_that_stands_twice_is_refused_with_its_place(tmp_path: Path) -> None:
    """By the domain, as in a list."""
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "codes.txt").write_text("a\na\n", encoding="utf-8")
    path = tmp_path / "survey.sulq.toml"
    path.write_text(CONFIG, encoding="utf-8")
    with pytest.raises(SetupError, match="column 'code'"):
        read(path)


def test_a_name_with_a_nul_is_no_file(tmp_path: Path) -> None:
    """It is refused by its place in a configuration, and by name where it is read."""
    with pytest.raises(SetupError, match="cannot be read"):
        read_values(tmp_path / "a\0.txt")
    path = tmp_path / "survey.sulq.toml"
    path.write_text(CONFIG.replace("codes.txt", r"codes\u0000.txt"), encoding="utf-8")
    with pytest.raises(SetupError, match="holds no NUL"):
        read(path)
