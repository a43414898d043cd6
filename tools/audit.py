"""The long statistical and fault runs: which suites, how much of each, and the table of what was run.

    python -m tools.audit --minutes 60      (make audit; --minutes 0 runs the full counts)
    python -m tools.audit --page            write the table anew, and run nothing

A suite is a test file that plans counts (tests/counts.py, tools/planned.py). Each gets an
equal share of the time left, runs as many cases as fit, and adds them to those
of earlier runs on the same code, so that an interrupted or short audit goes on
where it stopped. A change to the suite or to code it can reach (tools/reached.py)
starts its counts anew.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import hashlib
import itertools
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from tools.planned import WHY, kind, planned, why
from tools.printed import printed
from tools.reached import reached

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".audit"
TABLE: Final = ROOT / "docs" / "audit.md"
ITS_OWN: Final = "tests/test_audit.py"  # counts there are made up, to test the bookkeeping
PROBE: Final = 0.01  # the share of a first run, which measures how long a whole one takes
RUNS: Final = 3  # of one suite in one audit: a probe, a long run, and one to use up what is left


@dataclass
class Suite:
    """A test file, and what has been run of it."""

    name: str
    target: str
    digest: str = ""
    result: str = "not run"
    seconds: float = 0.0
    whole: float = 0.0  # seconds the full counts are expected to take; 0: unknown
    counts: dict[str, list[int]] = field(default_factory=dict)  # name: [done, planned]
    day: str = ""  # of the last run
    earlier: dict[str, Any] = field(default_factory=dict)  # the fullest run on earlier code, as a suite is kept

    @property
    def cases(self) -> int:
        """The cases that were run, if all of them passed."""
        return sum(done for done, _ in self.counts.values()) if self.result == "passed" else 0

    @property
    def complete(self) -> bool:
        """Whether all of its counts were run on this code, and passed."""
        return self.result == "passed" and all(done >= planned for done, planned in self.counts.values())


def main() -> int:
    """Run what the time allows and write the table."""
    parser = argparse.ArgumentParser(prog="make audit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="time shared over the suites; 0: the full counts")
    parser.add_argument("--only", default="", help="suites whose name contains this")
    parser.add_argument("--page", action="store_true", help="write the table anew, and run nothing")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="suites run at once")
    options = parser.parse_args()
    HOME.mkdir(exist_ok=True)
    suites = load(discover())
    if options.page:
        TABLE.write_text(table(suites), encoding="utf-8")
        return 0
    todo = [suite for suite in suites if not suite.complete and options.only in suite.name]
    todo.sort(key=lambda suite: -suite.whole)  # the longest first
    print(f"{len(suites)} suites, {len(todo)} to run, {options.workers} at a time")
    end = time.monotonic() + 60 * options.minutes
    saving = threading.Lock()

    def one(position: int) -> None:
        suite = todo[position]
        if options.minutes:
            left = max(end - time.monotonic(), 0.0)
            run_within(suite, left / math.ceil((len(todo) - position) / options.workers))
        else:
            run(suite, 1.0, None)
        with saving:
            save(suites)
            report(suite)

    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(one, range(len(todo))))
    save(suites)
    done = sum(suite.complete for suite in suites)
    failed = [suite.name for suite in suites if suite.result == "failed"]
    print(f"complete: {done} of {len(suites)} suites; table in {TABLE.relative_to(ROOT)}")
    print("\n".join(f"FAILED: {name} (see .audit/)" for name in failed))
    return 1 if failed else 0


def discover() -> list[Suite]:
    """Every test file that plans counts."""
    suites = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name != ITS_OWN and planned(path):
            suites.append(Suite(name, name))
    for suite in suites:
        suite.digest = digest(suite)
    return suites


def digest(suite: Suite) -> str:
    """A name for the code a suite's counts are about: all that it can reach, the pins, and what all tests share."""
    target = ROOT / suite.target
    suites = target.rglob("*.py") if target.is_dir() else [target]
    around = [folder / "conftest.py" for folder in (target, *target.parents) if (folder / "conftest.py").is_file()]
    files = reached([*suites, *around])
    total = hashlib.sha256()
    for path in sorted({ROOT / "constraints.txt", *files}):
        total.update(_content(path, path.stat().st_mtime_ns))
    return total.hexdigest()[:16]


@functools.cache
def _content(path: Path, _changed: int) -> bytes:
    """A file as the digest takes it, read again when it has changed."""
    return path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"


def run_within(suite: Suite, seconds: float) -> None:
    """Run as much of a suite as its time allows, in a few steps."""
    end = time.monotonic() + seconds
    for _ in range(RUNS):
        left = end - time.monotonic()
        share = min(1.0, 0.8 * left / suite.whole) if suite.whole else PROBE
        missing = max((1 - done / planned for done, planned in suite.counts.values() if planned), default=1.0)
        # A run much smaller than the last one is all fixed cost.
        if suite.result == "failed" or left <= 0 or (suite.counts and share < PROBE):
            break
        run(suite, min(share, max(missing, PROBE)), max(2 * left, 300.0))
        if suite.complete or suite.result != "passed" or not suite.whole:
            break


def run(suite: Suite, share: float, limit: float | None) -> None:
    """Run a suite once and add what it did to its counts."""
    slug = re.sub(r"\W+", "-", suite.name)
    log = HOME / f"{slug}.jsonl"
    log.unlink(missing_ok=True)
    marked = "pytest.mark.audit" in (ROOT / suite.target).read_text(encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        suite.target,
        *(["-m", "audit"] if marked else []),
    ]
    settings = {"SULQ_AUDIT": "1", "SULQ_AUDIT_SHARE": repr(share), "SULQ_AUDIT_LOG": str(log)}
    settings["SULQ_AUDIT_RUN"] = name = os.urandom(4).hex()
    print(f"{suite.name}: running {share:.1%} of the counts, as run {name}", flush=True)
    start = time.monotonic()
    output = HOME / f"{slug}.log"
    with output.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | settings, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(limit)
        except BaseException as stop:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            code = None
    took = time.monotonic() - start
    suite.seconds += took
    suite.day = today()
    suite.result = {0: "passed", None: "out of time"}.get(code, "failed")
    reached = add(suite, log, output.read_text(encoding="utf-8"))
    suite.whole = took / reached if reached and suite.result == "passed" else suite.whole


def add(suite: Suite, log: Path, output: str) -> float:
    """Add one run to a suite's counts; returns the share of the planned cases it reached."""
    ran: dict[str, list[int]] = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        entry = json.loads(line)
        both = ran.setdefault(entry["name"], [0, 0])
        both[0] += entry["done"]
        both[1] += entry["planned"]
    if not ran:
        passed = sum(int(number) for number in re.findall(r"(\d+) passed", output)[-1:])
        failed = sum(int(number) for number in re.findall(r"(\d+) (?:failed|errors?)", output)[-1:])
        suite.counts["tests"] = [passed, passed + failed]
    for name, (done, whole) in ran.items():
        before = suite.counts.get(name, [0, 0])[0]
        suite.counts[name] = [before + done, whole]
    shares = [min(done / whole, 1.0) for done, whole in ran.values() if whole]
    return sum(shares) / len(shares) if shares else 0.0


def load(suites: list[Suite]) -> list[Suite]:
    """Take up what earlier runs did on the same code; without a state, what the table says of earlier code."""
    path = HOME / "state.json"
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    else:
        kept = printed(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    found = []
    for suite in suites:
        before = kept.get(suite.name, {})
        if before.get("digest") == suite.digest:
            found.append(Suite(**before))
            continue
        # Of earlier code it is worth knowing how long a whole run takes, and what it showed then.
        known = [Suite(**each) for each in (before, before.get("earlier")) if each]
        fullest = max(known, key=lambda each: each.cases, default=None)
        earlier = dataclasses.asdict(fullest) | {"earlier": {}} if fullest is not None and fullest.cases else {}
        found.append(dataclasses.replace(suite, whole=before.get("whole", 0.0), earlier=earlier))
    return found


def save(suites: list[Suite]) -> None:
    """Keep the state, and write the table."""
    state = {suite.name: dataclasses.asdict(suite) for suite in suites}
    (HOME / "state.new").write_text(json.dumps(state, indent=1), encoding="utf-8")
    (HOME / "state.new").replace(HOME / "state.json")
    TABLE.write_text(table(suites), encoding="utf-8")


def table(suites: list[Suite]) -> str:
    """The page docs/audit.md."""
    rows = []
    kinds: dict[str, int] = dict.fromkeys(WHY, 0)
    for suite in itertools.chain.from_iterable(map(shown, suites)):
        for position, (name, (done, total)) in enumerate(sorted(suite.counts.items()) or missing(suite)):
            first = position == 0
            kinds[kind(name)] += 1
            head = f"`{suite.target}`" if first else ""
            tail = (_result(suite), f"{suite.seconds:,.0f}") if first else ("", "")
            rows.append(f"| {head} | {name} | {kind(name)} | {done:,} | {total:,} | {tail[0]} | {tail[1]} |")
    never = sum(not suite.counts and not suite.earlier for suite in suites)
    return "\n".join(
        [
            "# Audit",
            "",
            "The long statistical and fault runs. Written by `make audit`, which goes on where it stopped",
            "(`MINUTES=60` by default, `MINUTES=0` for the full counts). A suite's counts are of the code it reaches",
            "now, unless a day is named: then that code has changed since. Listed is each suite that plans counts;",
            "of one that was never run, what its text says of them (0 planned: a test works the number out).",
            "",
            f"{today()}; {machine()}. Suites: {len(suites)}, never run: {never}.",
            "",
            "## Why these counts are enough",
            "| kind | counts | why |",
            "|---|---:|---|",
            *(f"| {name} | {number} | {why(name)} |" for name, number in kinds.items()),
            "",
            "## Suites",
            "| suite | cases | kind | done | planned | result | seconds |",
            "|---|---|---|---:|---:|---|---:|",
            *rows,
            "",
        ]
    )


def missing(suite: Suite) -> list[tuple[str, tuple[int, int]]]:
    """The counts of a suite that was never run, as its text says them."""
    target = ROOT / suite.target
    found = planned(target) if target.is_file() else {}
    return [(name, (0, total)) for name, total in sorted(found.items())] or [("tests", (0, 0))]


def shown(suite: Suite) -> list[Suite]:
    """A suite as the table has it: what was run on this code, and what more of it on earlier code."""
    earlier = Suite(**suite.earlier) if suite.earlier else None
    rows = [suite] if suite.counts else []
    return [*rows, earlier] if earlier is not None and earlier.cases > suite.cases else rows or [suite]


def _result(suite: Suite) -> str:
    return suite.result if suite.digest == digest(suite) or not suite.day else f"{suite.result}, code of {suite.day}"


def machine() -> str:
    """What the runs ran on, in one line."""
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("duckdb", "opendp", "apsw", "numpy"))
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, Python {platform.python_version()}, {packages}"


def today() -> str:
    """The day, as a table says it."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def report(suite: Suite) -> None:
    """Say what a suite has done so far."""
    counts = ", ".join(f"{name} {done:,}/{planned:,}" for name, (done, planned) in sorted(suite.counts.items()))
    print(f"{suite.name}: {suite.result} in {suite.seconds:,.0f} s; {counts or 'no counts'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
