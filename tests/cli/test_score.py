"""`sulq score`: an evaluation of a saved model on a dataset's rows, printed, at one price."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sulq import Epsilon
from sulq.cli import app
from sulq.errors import SulqError
from sulq.learn import ID3, KMeans, LinearRegression
from tests.cli.test_learn import CONFIG
from tests.learn.programs import frame, people

MODELS = {
    "tree": (ID3(max_depth=2), ("age", "city", "smoker"), "ill"),
    "line": (LinearRegression(), ("age", "smoker"), "cost"),
    "groups": (KMeans(2), ("age", "income"), None),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up people with their declarations beside them, and models of them."""
    pq.write_table(frame(), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with people() as db:
        for name, (model, names, label) in MODELS.items():
            fitted = model.fit(db[list(names)], None if label is None else db[label], spend=Epsilon(20))
            fitted.save(tmp_path / f"{name}.json")
    return tmp_path


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, ["score", *words])


@pytest.mark.usefixtures("folder")
def test_every_kind_of_model_is_judged() -> None:
    """Measures with their intervals, the matrix of classes, and what it cost."""
    tree = typed("tree.json", "people.parquet", "--y", "ill", "--epsilon", "2")
    assert tree.exit_code == 0, tree.output
    for word in ("ID3", "accuracy", "auc", "recall of True", "rows: actual", "spent epsilon 2"):
        assert word in tree.output
    line = typed("line.json", "people.parquet", "--y", "cost", "--epsilon", "2")
    assert "r2" in line.output
    groups = typed("groups.json", "people.parquet", "--epsilon", "2")
    assert "score" in groups.output
    assert groups.exit_code == line.exit_code == 0


@pytest.mark.usefixtures("folder")
def test_measures_are_read_by_programs_too() -> None:
    """As one object of JSON."""
    told = typed("tree.json", "people.parquet", "--y", "ill", "--epsilon", "2", "--format", "json")
    found = json.loads(told.output)
    assert found["model"] == "ID3"
    assert found["spent"] == "epsilon 2"
    assert found["measures"]["accuracy"]["low"] <= found["measures"]["accuracy"]["value"]


@pytest.mark.usefixtures("folder")
def test_what_is_missing_is_named() -> None:
    """A label, a price, a model that is one."""
    for words, code in [
        (("tree.json", "people.parquet", "--epsilon", "1"), "bad-question"),
        (("tree.json", "people.parquet", "--y", "ill"), "spend-missing"),
        (("people.sulq.toml", "people.parquet", "--y", "ill", "--epsilon", "1"), "bad-model"),
        (("none.json", "people.parquet", "--y", "ill", "--epsilon", "1"), "missing-file"),
    ]:
        found = typed(*words)
        assert isinstance(found.exception, SulqError)
        assert found.exception.code == code
