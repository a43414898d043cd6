"""Plants each bug of tools/mutants_list.py in a copy of our code and shows which test notices.

    python -m tools.mutants [--only NAME] [--jobs 2]      (make mutants)

A copy of src and tests is made in a temporary folder, never touched otherwise; there
the named tests must pass as they stand, and at least one of each mutant's must fail once
its line is changed: by an assertion, or since what must be refused was not. A test that breaks down, or
cannot be set up, has noticed that something is wrong and not what: that is no kill. A line that no longer
stands in its file is an error: the list must be mended, not the count. A run writes docs/mutants.md,
which says when the list was last run and what noticed each bug; of some alone it writes their rows.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from sulq.version import __version__
from tools.mutant import Mutant
from tools.mutants_list import MUTANTS

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = ROOT / "docs" / "mutants.md"
COPIED: Final = ("src", "tests", "tools", "benchmarks", "examples", "docs", "README.md", "pyproject.toml")
SECONDS: Final = 300.0  # of one mutant's tests: what hangs has not noticed
NOTICED: Final = ("assert ", "AssertionError", "Failed: DID NOT RAISE")  # how a test says that a check did not hold
MISSED: Final = "**not noticed**"
NOT_A_TEST: Final = {2: "interrupted", 3: "an error inside pytest", 4: "a test of that name is missing", 5: "no test"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one mutant: `noticed` by this test, or else why not."""

    mutant: Mutant
    noticed: str
    fault: str
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether a test failed for it."""
        return bool(self.noticed) and not self.fault


def main() -> int:
    """Plant every mutant; 0 if all are noticed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="mutants at once")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only.lower() in mutant.bug.lower()]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sulq-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(copied(Path(folder) / str(number)))

        def one(mutant: Mutant) -> Outcome:
            place = copies.get()
            try:
                found = tried(mutant, place)
            finally:
                copies.put(place)
            print(line(found), flush=True)
            return found

        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = list(pool.map(one, chosen))
    killed = sum(outcome.killed for outcome in outcomes)
    before = TABLE.read_text(encoding="utf-8") if options.only else ""
    TABLE.write_text(page(outcomes, datetime.datetime.now(tz=datetime.UTC).date(), before), encoding="utf-8")
    print(f"{killed} of {len(outcomes)} mutants are noticed, in {time.monotonic() - start:,.0f} s")
    return 0 if killed == len(outcomes) else 1


def page(outcomes: list[Outcome], day: datetime.date, before: str = "") -> str:
    """The table of a run: when it was, and what noticed each bug; of those that were not run the rows `before`."""
    run = {
        found.mutant.bug: f"{_begin(found.mutant)}"
        f"{f'`{found.noticed}`' if found.killed else f'{MISSED}: {found.fault}'} |"
        for found in outcomes
    }
    rows = [run.get(mutant.bug) or _row(mutant, before) for mutant in MUTANTS if before or mutant.bug in run]
    killed = sum(f"| {MISSED}" not in row for row in rows)
    alone = f", {len(outcomes)} of them alone" if before else ""
    return "\n".join(
        [
            "# Planted bugs",
            "<!-- Written by `make mutants`; edit tools/mutants_{others,own,proposers,paths}.py. -->",
            "",
            "Each row is a privacy bug as a change of one line of our code: those of other systems first, then the",
            "faults that were found in our own, then mistakes in what plans and proposes, then mistakes on the paths",
            "that make things fast. The last column is the test that fails once the line is changed.",
            "",
            f"Last run: {day.isoformat()}, sulq {__version__}{alone}: {killed} of {len(rows)} noticed.",
            "",
            "| bug | what goes wrong | planted in | noticed by |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _begin(mutant: Mutant) -> str:
    """The columns of a row that are known before it is run."""
    return f"| {mutant.bug} | {mutant.what} | `{mutant.file}` | "


def _row(mutant: Mutant, page: str) -> str:
    """A mutant's row of an earlier page, if it was run as it stands."""
    begin = _begin(mutant)
    return next((row for row in page.splitlines() if row.startswith(begin)), f"{begin}{MISSED}: not run |")


def collect(place: Path, names: Iterable[str]) -> str:
    """What pytest says against collecting the named tests in a copy; empty if all are there."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *names]
    found = subprocess.run(command, cwd=place, env=os.environ | _settings(place), capture_output=True, text=True)  # noqa: PLW1510
    return "" if found.returncode == 0 else found.stdout + found.stderr


def _settings(place: Path) -> dict[str, str]:
    # Wide: pytest cuts the lines of its summary, which say how a test failed. No plugins: one of them loads JAX.
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "1000", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {"PYTHONPATH": str(place / "src"), **settings}


def copied(place: Path) -> Path:
    """The code and its tests in a folder of their own."""
    place.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, place / name)
    return place


def tried(mutant: Mutant, place: Path) -> Outcome:
    """Run a mutant's tests on the code as it stands, then on the code with the bug in it."""
    start = time.monotonic()
    path = place / "src" / "sulq" / mutant.file
    before = path.read_text(encoding="utf-8")
    try:
        after = planted(mutant, before)
        failed, why = tests(mutant, place)
        if failed or why:
            return Outcome(mutant, "", f"its tests fail without it: {failed or why}", time.monotonic() - start)
        path.write_text(after, encoding="utf-8")
        failed, why = tests(mutant, place)
        return Outcome(mutant, failed, why or ("" if failed else "NOT NOTICED"), time.monotonic() - start)
    except LookupError as stale:
        return Outcome(mutant, "", str(stale), time.monotonic() - start)
    finally:
        path.write_text(before, encoding="utf-8")


def planted(mutant: Mutant, text: str) -> str:
    """The file with the bug in it.

    Raises:
        LookupError: The line is not there exactly once: the list is out of date.
    """
    lines = text.splitlines(keepends=True)
    places = [i for i, found in enumerate(lines) if found.rstrip("\n") == mutant.line]
    if len(places) != 1:
        raise LookupError(f"the line stands {len(places)} times in {mutant.file}: mend tools/mutants_list.py")
    lines[places[0]] = mutant.planted + "\n"
    return "".join(lines)


def tests(mutant: Mutant, place: Path) -> tuple[str, str]:
    """The first test that fails, or why none could be run."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
    process = subprocess.Popen(
        command,
        cwd=place,
        env=os.environ | _settings(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "", f"not done after {SECONDS:.0f} s"
    if process.returncode == 0:
        return "", ""
    if process.returncode in NOT_A_TEST:
        return "", NOT_A_TEST[process.returncode]
    return judged(output)


def judged(output: str) -> tuple[str, str]:
    """The test that an assertion failed in, by pytest's summary, or why there is none."""
    found = re.search(r"^(FAILED|ERROR) (\S.*?)(?: - (.*))?$", output, re.MULTILINE)
    if found is None:
        return "", "pytest failed without naming a test"
    word, test, how = found[1], found[2], found[3] or ""
    if word == "FAILED" and how.startswith(NOTICED):
        return test, ""
    return "", f"{test} broke down: {how[:80] or word}"


def line(outcome: Outcome) -> str:
    """One row of the table."""
    said = outcome.noticed.rpartition("::")[2] if outcome.killed else outcome.fault
    word = "noticed" if outcome.killed else "FAILED "
    return f"{word}  {outcome.mutant.bug:22} {outcome.seconds:5.0f} s  {outcome.mutant.what}: {said}"


if __name__ == "__main__":
    sys.exit(main())
