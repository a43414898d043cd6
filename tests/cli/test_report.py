"""`sulq report`: a page from a specification at one debit; the page of a report that was made, for nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sulq
from sulq.cli import app, exit_code
from sulq.errors import SulqError
from tests.learn.programs import COLUMNS, frame

CONFIG = """
[dataset]
data = "people.parquet"
budget = { epsilon = 3 }
[dataset.columns]
age = { int = [0, 120] }
city = { category = ["Haifa", "Lod", "Yafo"] }
"""
SPEC = """
title = "Who lives here"
dataset = "people.parquet"
spend = { epsilon = 1 }

[[table]]
title = "By city"
sql = "SELECT city, COUNT(*) AS people FROM people GROUP BY city"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up people, their declarations and a specification."""
    pq.write_table(frame(), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(*words: str) -> str:
    """What a command printed."""
    done = CliRunner().invoke(app, ["report", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(code: str, *words: str) -> SulqError:
    """The refusal of a command."""
    with pytest.raises(SulqError) as refusal:
        CliRunner().invoke(app, ["report", *words], catch_exceptions=False)
    assert refusal.value.code == code
    return refusal.value


def spent(folder: Path) -> object:
    """What the ledger beside the data says."""
    columns = {name: COLUMNS[name] for name in ("age", "city")}
    columns["age"] = sulq.Int(0, 120)
    with sulq.connect(folder / "people.parquet", columns=columns, budget=sulq.Epsilon(3)) as db:
        return db.spent


def test_a_report_is_written_and_made_again_free(folder: Path) -> None:
    """The second page costs nothing, needs no data and is the same."""
    assert "index.html" in ran("spec.toml", "--out", "made")
    assert spent(folder) == sulq.Epsilon(1)
    (folder / "people.parquet").rename(folder / "elsewhere.parquet")
    ran("made", "--out", "again")
    assert (folder / "again" / "index.html").read_bytes() == (folder / "made" / "index.html").read_bytes()
    (folder / "elsewhere.parquet").rename(folder / "people.parquet")
    assert spent(folder) == sulq.Epsilon(1)


def test_dataset_price_and_format_may_be_named(folder: Path) -> None:
    """They stand in place of the specification's."""
    (folder / "spec.toml").write_text(
        SPEC.replace('dataset = "people.parquet"\nspend = { epsilon = 1 }\n', ""), "utf-8"
    )
    assert "names no dataset" in refused("bad-report", "spec.toml", "--out", "made").message
    ran("spec.toml", "people.parquet", "--out", "made", "--epsilon", "0.5", "--format", "parquet")
    assert pq.read_table(folder / "made" / "01-by-city.parquet").num_rows == 4
    assert spent(folder) == sulq.Epsilon(0.5)


def test_refusals_come_before_a_debit(folder: Path) -> None:
    """A place that cannot be written, a price that is missing, words that do not fit a folder."""
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("mine", encoding="utf-8")
    refused("folder-in-use", "spec.toml", "--out", "taken")
    (folder / "free.toml").write_text(SPEC.replace("spend = { epsilon = 1 }", ""), encoding="utf-8")
    assert exit_code(refused("spend-missing", "free.toml", "--out", "made")) == 2
    assert exit_code(refused("budget-exceeded", "spec.toml", "--epsilon", "4", "--out", "made")) == 3
    refused("missing-file", "none.toml", "--out", "made")
    ran("spec.toml", "--out", "made")
    assert "nothing is asked" in refused("bad-report", "made", "--out", "again", "--epsilon", "1").message
    sulq.release.publish(
        sulq.connect({"a": frame()}, columns={"a": {"age": (0, 120)}}, budget=sulq.Epsilon(1)),
        ["SELECT COUNT(*) FROM a"], spend=sulq.Epsilon(1),
    ).save(folder / "other")  # fmt: skip
    assert "another kind" in refused("bad-report", "other", "--out", "again").message
    assert spent(folder) == sulq.Epsilon(1)
