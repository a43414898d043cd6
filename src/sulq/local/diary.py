"""A respondent's own filter and memory: what may still be told, and what was told already (SR19)."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Final

from sulq.errors import BudgetExceeded, QuestionError, SetupError
from sulq.language.privacy import Epsilon

FORMAT: Final = 1
OWNER: Final = 0o600  # who may read what was told, and write it
Told = int | list[int]


class Diary:
    """A budget of pure epsilon, charged by every new report, and the reports that were given.

    Privacy: losses chosen adaptively add up, so the reports given together lose at most the budget [S4.8]. A
    report is noted, with its price, before it leaves; the same (round, question) is told the same again, whatever
    the value is by then, so repeating it costs nothing and averaging it gains nothing (trap 10). Whether
    a report is refused depends on what was asked before and never on a value.
    Source: docs/theory/local.md.

    Args:
        budget: What all reports together may lose: Epsilon(2).
        path: Where it is kept, readable by its owner alone, and rewritten before each new report leaves. Whoever else
            has it open, here or in another process, waits and reads it again. If it is deleted, or lacks a report that
            this object knows of, nothing more is told. Left out, it is forgotten at exit.
    """

    def __init__(self, budget: Epsilon, path: str | Path | None = None) -> None:
        if not isinstance(budget, Epsilon):
            raise QuestionError("bad-loss", "A respondent's budget is pure: Epsilon(2).")
        self._budget = budget.exact
        self._path = None if path is None else Path(path)
        self._told: dict[str, tuple[str, Fraction, Told]] = {}
        self._turn = threading.RLock()
        self._lock: int | None = None  # held while a report is given
        self._look()

    @property
    def budget(self) -> Epsilon:
        """What all reports together may lose."""
        return Epsilon(self._budget)

    @property
    def spent(self) -> Epsilon:
        """What the reports given so far have lost, at most."""
        with self._turn:  # else what another thread is about to write could be taken back
            if self._lock is None:
                self._look()
            return Epsilon.total(sum((price for _, price, _ in self._told.values()), start=Fraction(0)))

    @property
    def remaining(self) -> Epsilon:
        """What is left."""
        return Epsilon.total(self._budget - self.spent.amount)

    def find(self, key: str, encoding: str) -> Told | None:
        """The report given under a key, if any.

        Raises:
            QuestionError: `key-reused`: the key was used for another domain, epsilon or method.
        """
        held = self._told.get(key)
        if held is None:
            return None
        if held[0] != encoding:
            raise QuestionError(
                "key-reused", "This round and question were answered in another encoding.", "Name a new round."
            )
        return held[2]

    def afford(self, price: Fraction) -> None:
        """Refuse a report that the budget does not hold, before it is drawn."""
        if self.spent.amount + price > self._budget:
            raise BudgetExceeded(
                "budget-exceeded",
                f"A report would cost {Epsilon(price)}; {self.remaining} is left.",
                "This respondent has told all it will: ask others, or earlier rounds again.",
            )

    def note(self, key: str, encoding: str, price: Fraction, told: Told) -> None:
        """Write a report down, with its price; only then may it leave."""
        with self._turn:
            noted = {**self._told, key: (encoding, price, told)}
            if self._path is not None:
                self._write(self._path, noted)
            self._told = noted  # if it could not be written it does not leave, so it is not told

    def __enter__(self) -> None:
        """One report at a time: a budget is not spent twice by two threads, objects or processes.

        The lock is on a file beside the diary, which is never replaced as the diary is; what others told
        meanwhile is read before anything is decided.
        """
        self._turn.acquire()
        try:
            if self._path is not None:
                self._lock = _locked(self._path)
                self._look()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
        self._turn.release()

    def _look(self) -> None:
        """Read what is kept, whoever wrote it."""
        if self._path is None:
            return
        if self._path.exists():
            self._read(self._path)
        elif self._told:  # a diary without its past would spend the budget anew
            raise SetupError("ledger-damaged", f"{self._path} is gone; nothing was told.")

    def _write(self, path: Path, noted: dict[str, tuple[str, Fraction, Told]]) -> None:
        told = {key: [encoding, str(price), report] for key, (encoding, price, report) in noted.items()}
        text = json.dumps({"format": FORMAT, "budget": str(self._budget), "told": told})
        beside = path.with_name(path.name + ".new")
        try:
            beside.unlink(missing_ok=True)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            _settled(path.parent)
        except OSError:
            raise _unwritten(path) from None

    def _read(self, path: Path) -> None:
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            if tree["format"] != FORMAT:
                raise ValueError
            kept = Fraction(tree["budget"])
            found = {key: (str(e), Fraction(price), told) for key, (e, price, told) in tree["told"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise SetupError("ledger-damaged", f"{path} is no diary that can be read.") from None
        if kept != self._budget:
            raise SetupError("budget-mismatch", f"This diary has a budget of {Epsilon(kept)}.")
        if any(found.get(key) != held for key, held in self._told.items()):  # a diary only ever grows
            raise SetupError(
                "ledger-rolled-back",
                f"{path} is older than, or another than, the diary read from it before; nothing was told.",
                "Put the newest copy back; where there is none, this person has told all it will.",
            )
        self._told = found


def _locked(path: Path) -> int:
    """Wait for the diary and take it; closing the handle lets it go, and so does the end of the process."""
    try:
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, OWNER)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        raise _unwritten(path) from None
    return lock


def _settled(folder: Path) -> None:
    """A new name is on disk once its folder is: else a report could leave and its price be lost with the power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritten(path: Path) -> SetupError:
    return SetupError("missing-file", f"The diary cannot be written to {path}; nothing was told.")
