"""`sulq access` and what `sulq analyst` writes there, as a person types it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.cli.show import console
from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.clerk.access import Access
from sulq.service.clerk.tokens import PREFIX, SESSION_PREFIX, TOKEN_DAYS, drawn, hashed


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sulq.toml"
    dataset = '[dataset.survey]\ndata = "survey.csv"\nbudget = { epsilon = 1 }\ncolumns = { age = [0, 120] }\n'
    path.write_text(f'{dataset}[server]\nstate = "kept"\n', encoding="utf-8")
    return path


def run(config: Path, *words: str):
    return CliRunner().invoke(app, [*words, "--config", str(config)], env={"COLUMNS": "200"})


def test_acts_on_the_host_are_shown_exported_and_verified(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding, rotating, revoking and what was refused; by name and dataset; as lines, as a table, and its head."""
    monkeypatch.setattr(console, "width", 250)  # which it takes from whoever imports it first; narrow, it breaks words
    owner = run(config, "analyst", "add", "olga", "--role", "owner").stdout.strip()
    token = run(config, "analyst", "add", "alice", "--dataset", "survey").stdout.strip()
    newer = run(config, "analyst", "rotate", "alice", "--overlap", "2h").stdout.strip()
    with Access(config.parent / "kept" / "access.db") as access:
        assert access.find(hashed(token)) is not None
        assert access.find(hashed(newer)) is not None
    assert run(config, "analyst", "revoke", "alice").exit_code == 0
    for words, code in ((("add", "Alice"), "name-revoked"), (("add", "olga"), "last-owner"),
                        (("revoke", "olga"), "last-owner")):  # fmt: skip
        refused = run(config, "analyst", *words)
        assert isinstance(refused.exception, (AccessDenied, QuestionError))
        assert refused.exception.code == code
    lines = [json.loads(line) for line in run(config, "access", "export").stdout.splitlines()]
    assert [(line["what"], line["name"], line["outcome"]) for line in lines if line["outcome"] != "begun"] == [
        ("add_principal", "olga", "ok"), ("add_principal", "alice", "ok"), ("rotate", "alice", "ok"),
        ("revoke", "alice", "ok"), ("add_principal", "Alice", "name-revoked"),
        ("add_principal", "olga", "last-owner"), ("revoke", "olga", "last-owner"),
    ]  # fmt: skip
    assert [line["seq"] for line in lines] == list(range(1, 15))
    assert all(line["who"].startswith("host:") and line["from"] == "host" for line in lines)
    table = list(csv.DictReader(io.StringIO(run(config, "access", "export", "--format", "csv").stdout)))
    assert [int(row["seq"]) for row in table] == list(range(1, 15))
    assert json.loads(table[2]["more"])["datasets"] == ["survey"]
    shown = run(config, "access", "show", "--last", "3").stdout
    assert "name-revoked" in shown
    assert "begun" not in shown
    assert run(config, "access", "export", "--who", "nobody").stdout == ""
    assert run(config, "access", "export", "--since", "2999-01-01").stdout == ""
    assert len(run(config, "access", "export", "--since", "2000-01-01T12:00").stdout.splitlines()) == 14
    everything = "".join(run(config, "access", *words).stdout for words in (("export",), ("show",)))
    assert not any(secret in everything for secret in (owner, token, newer, hashed(owner)))
    for odd in (("export", "--format", "xml"), ("show", "--since", "yesterday")):
        assert isinstance(run(config, "access", *odd).exception, QuestionError)


def test_a_token_in_place_of_a_name_does_not_stand_in_the_log(config: Path) -> None:
    """Pasted by mistake, as a name or for a session's id; nor what moves a terminal. Control: a name stands there."""
    pasted = [drawn(PREFIX), drawn(SESSION_PREFIX)]
    for token in pasted:
        for words in (("revoke", token), ("rotate", token), ("add", token, "--role", token)):
            run(config, "analyst", *words)
    run(config, "analyst", "revoke", "esc\x1b[2J" + "x" * 1000)
    run(config, "analyst", "add", "alice")
    lines = [json.loads(line) for line in run(config, "access", "export").stdout.splitlines()]
    assert [line["name"] for line in lines] == ["..."] * 12 + ["esc?[2J" + "x" * 73] * 2 + ["alice"] * 2
    assert (lines[-1]["role"], lines[-1]["days"], lines[-1]["datasets"]) == ("analyst", TOKEN_DAYS, [])
    everything = (config.parent / "kept" / "access.log").read_bytes()
    assert not any(token.encode() in everything for token in pasted)
    assert b"alice" in everything


def test_verify_finds_what_was_changed_and_what_was_cut_off(config: Path) -> None:
    """The head that a check printed is what a later one is held against; without it a tail that is gone is not seen."""
    assert isinstance(run(config, "access", "verify").exception, SetupError)
    for name in ("a", "b", "c"):
        run(config, "analyst", "add", name)
    said = run(config, "access", "verify").stdout
    head = said.split("head ")[1].strip()
    assert "6 entries" in said
    run(config, "analyst", "revoke", "a")
    assert run(config, "access", "verify", "--head", head).exit_code == 0
    with sqlite3.connect(config.parent / "kept" / "access.log") as db:
        db.execute("DELETE FROM entries WHERE seq > 4")
        db.execute("UPDATE head SET seq = 4, hash = (SELECT hash FROM entries WHERE seq = 4)")
    assert run(config, "access", "verify").exit_code == 0
    for noted in (head, "x", "6:", f"4:{head.partition(':')[2]}"):
        caught = run(config, "access", "verify", "--head", noted).exception
        assert isinstance(caught, SetupError)
        assert caught.code == "access-damaged"
    with sqlite3.connect(config.parent / "kept" / "access.log") as db:
        db.execute("UPDATE entries SET body = replace(body, 'host', 'home') WHERE seq = 2")
    for words in (("verify",), ("export",), ("show",)):
        caught = run(config, "access", *words).exception
        assert isinstance(caught, SetupError)
        assert "entry 2" in caught.message


def test_nobody_is_granted_a_dataset_that_was_not_named(config: Path) -> None:
    """None named is none; all are said; both at once, or an overlap that is no span of time, is refused."""
    for words, scope in (((), ()), (("--dataset", "survey"), ("survey",)), (("--all-datasets",), None)):
        found = run(config, "analyst", "add", "bob", *words)
        with Access(config.parent / "kept" / "access.db") as access:
            known = access.find(hashed(found.stdout.strip()))
        assert known is not None
        assert known.datasets == scope
        assert ("may see no dataset" in found.stderr) == (scope == ())
    for odd in (("add", "bob", "--all-datasets", "--dataset", "survey"), ("rotate", "bob", "--overlap", "soon"),
                ("rotate", "bob", "--overlap", "99d")):  # fmt: skip
        assert isinstance(run(config, "analyst", *odd).exception, QuestionError)
