"""`sulq ledger backup` and `restore` as a person types them, and the drill of their page, command by command."""

from __future__ import annotations

import re
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sulq.cli import app
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.errors import SulqError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.privacy import Epsilon, Unit
from tests.curator.ledger.cases import pure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operate" / "backup.md"


def asked(number: int, **options: object) -> Epsilon:
    """So many debits of ann's in a ledger of this folder; what is spent then."""
    told = {"unit": Unit(), "budget": Epsilon(1), **options}
    with Ledger.open("survey.ledger", mechanisms=tuple(MECHANISMS), **told) as ledger:
        for _ in range(number):
            ledger.debit(pure("0.01"), question="q", plan_digest="p", analyst="ann [b]x[/b]")
        return ledger.spent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("elsewhere").mkdir()
    return tmp_path


def run(command: str) -> Result:
    words = shlex.split(command)
    if words[0] != "sulq":
        assert words == ["mkdir", "-p", "backup"]
        Path("backup").mkdir()
        return CliRunner().invoke(app, ["--version"])
    return CliRunner().invoke(app, words[1:])


def drill(text: str, between: Callable[[int], None]) -> list[tuple[str, object]]:
    """Run a page's commands in order, `between` before each, and compare what it says that each prints."""
    commands: list[tuple[str, object]] = []
    for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
        said = ""
        for line in (line.strip() for line in block.splitlines()):
            if line.startswith("$ "):
                between(len(commands))
                found = run(line[2:])
                code = found.exception.code if isinstance(found.exception, SulqError) else found.exit_code
                commands.append((line[2:], code))
                said = found.output
            else:
                assert line.removesuffix("...") in said, f"{line!r} is not in {said!r}"
    return commands


def test_the_drill_of_the_page_does_what_it_says() -> None:
    """Copied, asked on, refused as older, accepted and burnt, sound: in order, and as much is spent as before.

    Control: a page that promises what is not printed is noticed.
    """
    spent = asked(3, anchor="elsewhere/survey.anchor")
    after: list[Epsilon] = []

    def between(number: int) -> None:
        if number == 2:
            after.append(asked(4, anchor="elsewhere/survey.anchor"))

    found = drill(PAGE.read_text(encoding="utf-8"), between)
    restore = "sulq ledger restore backup/survey.copy survey.ledger --anchor elsewhere/survey.anchor"
    assert [code for _, code in found] == [0, 0, 0, "ledger-rolled-back", 0, 0]
    assert [command for command, _ in found[3:5]] == [restore, f"{restore} --forget"]
    assert verify("survey.ledger").spent == after[0] != spent
    assert asked(1, anchor="elsewhere/survey.anchor").amount > after[0].amount
    with pytest.raises(AssertionError, match="is not in"):
        drill("```text\n$ sulq ledger verify survey.ledger\nnever said\n```", lambda _: None)


def test_what_is_printed_names_what_was_lost_and_kept() -> None:
    """Names are text and no markup; the older file's place is said, and modes are 0600."""
    asked(1, anchor="elsewhere/survey.anchor")
    assert "copied: 3 entries (1 debits" in " ".join(run("sulq ledger backup survey.ledger a.copy").output.split())
    asked(2, anchor="elsewhere/survey.anchor")
    told = "sulq ledger restore a.copy survey.ledger --anchor elsewhere/survey.anchor"
    assert "2 asks that its anchor noted" in str(run(told).exception)
    said = " ".join(run(f"{told} --forget").output.split())
    for words in ("2 of them asks", "burnt: 2 asks of ann [b]x[/b]", "is now survey.ledger.replaced-1", "restored: "):
        assert words in said
    assert {stat.S_IMODE(Path(name).stat().st_mode) for name in ("a.copy", "survey.ledger")} == {0o600}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("backup none.ledger a.copy", "missing-file"),
        ("backup survey.ledger survey.ledger", "bad-declaration"),
        ("backup survey.ledger other.ledger", "bad-declaration"),
        ("backup survey.ledger nowhere/a.copy", "missing-file"),
        ("restore none.copy survey.ledger", "missing-file"),
        ("restore survey.ledger survey.ledger", "bad-declaration"),
        ("restore survey.ledger postgresql://h/d?ledger=a", "bad-declaration"),
    ],
)
def test_what_cannot_be_done_is_said(command: str, code: str) -> None:
    """With a code, and the ledger is what it was."""
    asked(1)
    before = Path("survey.ledger").read_bytes()
    error = run(f"sulq ledger {command}").exception
    assert isinstance(error, SulqError)
    assert error.code == code
    assert Path("survey.ledger").read_bytes() == before
    assert {path.name.removesuffix("-journal") for path in Path().iterdir()} == {"elsewhere", "survey.ledger"}
