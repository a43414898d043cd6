"""`sulq analyst`: tokens on the host, shown once, ended at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.clerk.access import Access
from sulq.service.clerk.tokens import hashed


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sulq.toml"
    dataset = '[dataset.{}]\ndata = "{}.csv"\nbudget = {{ epsilon = 1 }}\ncolumns = {{ age = [0, 120] }}\n'
    datasets = "".join(dataset.format(name, name) for name in ("survey", "visits"))
    path.write_text(f'{datasets}[server]\nstate = "kept"\n', encoding="utf-8")
    return path


def run(config: Path, *words: str):
    return CliRunner().invoke(app, ["analyst", *words, "--config", str(config)])


def test_add_prints_a_token_that_works_and_nothing_else_on_stdout(config: Path) -> None:
    """So that it can be piped; role, datasets and days are those that were said."""
    found = run(
        config, "add", "alice", "--role", "auditor", "--dataset", "survey", "--dataset", "visits", "--days", "3"
    )
    assert found.exit_code == 0, found.output
    token = found.stdout.strip()
    with Access(config.parent / "kept" / "access.db") as access:
        known = access.find(hashed(token))
        assert known is not None
        assert (known.name, known.role, known.datasets) == ("alice", "auditor", ("survey", "visits"))
        assert known.expires - known.created == 3 * 86400
    assert "this once" in found.stderr
    assert token not in found.stderr


def test_add_knows_the_datasets(config: Path) -> None:
    """A misspelt one is refused with the nearest; the control: those of the configuration and of the state are not."""
    found = run(config, "add", "bob", "--dataset", "survy")
    assert isinstance(found.exception, QuestionError)
    assert found.exception.code == "bad-principal"
    assert "'survey'" in found.exception.message
    with Access(config.parent / "kept" / "access.db") as access:
        assert access.list() == []
    registered = config.parent / "kept" / "datasets"
    registered.mkdir()
    (registered / "fresh.json").write_text("{}")
    assert run(config, "add", "bob", "--dataset", "visits", "--dataset", "fresh").exit_code == 0


def test_add_again_replaces_the_token(config: Path) -> None:
    """The way back in for an owner whose token is lost; the lost one opens nothing more."""
    first = run(config, "add", "owner", "--role", "owner").stdout.strip()
    second = run(config, "add", "owner", "--role", "owner").stdout.strip()
    with Access(config.parent / "kept" / "access.db") as access:
        assert access.find(hashed(first)) is None
        assert access.find(hashed(second)) is not None


def test_list_and_revoke(config: Path) -> None:
    """The list shows who, what and until when, never a token; an ended one is marked."""
    token = run(config, "add", "alice").stdout.strip()
    listed = run(config, "list")
    assert "alice" in listed.stdout
    assert "analyst" in listed.stdout
    assert token not in listed.stdout
    assert hashed(token) not in listed.stdout
    assert run(config, "revoke", "alice").exit_code == 0
    with Access(config.parent / "kept" / "access.db") as access:
        assert access.find(hashed(token)) is None
    assert isinstance(run(config, "revoke", "alice").exception, AccessDenied)
    assert isinstance(run(config, "revoke", "nobody").exception, AccessDenied)


def test_what_makes_no_sense_is_refused(config: Path) -> None:
    """A role, a name or a life that is none; a configuration that is not there."""
    for words in (("add", "alice", "--role", "admin"), ("add", "../alice"), ("add", "alice", "--days", "0")):
        assert isinstance(run(config, *words).exception, QuestionError)
    assert isinstance(run(config.with_name("none.toml"), "list").exception, SetupError)
