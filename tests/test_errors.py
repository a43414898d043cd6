"""Errors: every code registered, explained, of one class, and carried by what is raised."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import traceback

import pytest

from sulq import errors
from sulq.errors import CODES, AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError
from sulq.language.domain import Category
from tests.trees import SRC, tree, trees

CLASSES = (QuestionError, BudgetExceeded, AccessDenied, SetupError, CuratorError)


def raised() -> dict[str, set[str]]:
    """Every code the package names in a call of an error class, and the classes it is given to."""
    found: dict[str, set[str]] = {}
    for each in trees().values():
        for node in ast.walk(each):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            code = node.args[0]
            if node.func.id in {cls.__name__ for cls in CLASSES} and isinstance(code, ast.Constant):
                found.setdefault(code.value, set()).add(node.func.id)
    return found


def test_every_code_in_the_source_is_registered() -> None:
    """No raise names a code that CODES does not explain."""
    assert set(raised()) - set(CODES) == set()


def test_every_registered_code_is_kebab_case_and_says_what_to_do() -> None:
    """Codes are stable words; each has a sentence of advice that ends with a full stop or an address."""
    for code, remedy in CODES.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
        assert len(remedy) > 10
        assert remedy[0].isupper()


def test_an_error_after_a_debit_is_the_curators_own() -> None:
    """Codes of failures that leave the debit belong to CuratorError alone, so that a class tells what it cost (T45).

    Of a curator that cannot be reached nobody knows whether it was asked: that counts as charged, too.
    """
    found = raised()
    for code in ("engine-failed", "noise-failed", "bad-receipt"):
        assert found[code] == {"CuratorError"}
    for code, classes in found.items():
        if "CuratorError" in classes:
            assert code in {"engine-failed", "noise-failed", "bad-receipt", "ledger-failed", "unreachable"}


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_prints_what_why_and_what_next(cls: type[SulqError]) -> None:
    """Message, remedy and code stand in the text; a remedy of its own replaces the registered one."""
    error = cls("closed", "It is closed.")
    assert str(error) == f"It is closed. {CODES['closed']} [closed]"
    assert (error.code, error.message, error.remedy) == ("closed", "It is closed.", CODES["closed"])
    assert str(cls("closed", "It is closed.", "Knock.")) == "It is closed. Knock. [closed]"
    assert isinstance(error, SulqError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, str(error))


def test_an_unregistered_code_cannot_be_raised() -> None:
    """A typo in a code is found where it is made."""
    with pytest.raises(LookupError):
        QuestionError("no-such-code", "Oh.")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """The drawing names every class there is."""
    classes = [name for name, _ in inspect.getmembers(errors, inspect.isclass)]
    assert all(name in (errors.__doc__ or "") for name in classes)


def test_no_error_is_chained_to_one_of_an_engine_T31() -> None:
    """In the trusted half nothing is raised `from` the exception it answers: its text may hold a cell (T31, S0.1).

    The ledger's own errors are about its file, which holds no rows.
    """
    found = []
    for folder in ("kernel", "compile", "sources"):
        for path in (path for path in (SRC / folder).rglob("*.py") if path.parent.name != "ledger"):
            raises = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Raise)]
            found += [f"{path.name}:{node.lineno}" for node in raises if isinstance(node.cause, ast.Name)]
    assert found == []


def test_a_notebook_shows_the_message_and_the_callers_line() -> None:
    """IPython asks an exception how it is to be shown: no frame of this package, and the code to look up.

    Control: Python's own traceback of the same refusal has the frames.
    """
    try:
        Category([])
    except SetupError as refusal:
        shown = refusal._render_traceback_()
        frames = traceback.format_exception(refusal)
    assert shown[0].startswith("SetupError: A Category needs")
    assert any("Category([])" in line for line in shown)
    assert shown[-1] == "  code: bad-declaration"
    assert not any("domain.py" in line for line in shown)
    assert any("domain.py" in line for line in frames)
    assert QuestionError("closed", "It is closed.")._render_traceback_()[1] == f"  What to do: {CODES['closed']}"
