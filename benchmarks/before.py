"""Before and after in one run: an earlier revision's code and the present one, in turns, each in its own process.

    python -m benchmarks.before [REVISION [WORD ...]]     # cases whose names have one of the words

The revision is taken out of the repository into a temporary folder, and `PYTHONPATH` leads there. The benchmarks
themselves are the present ones; a case uses only what both have.
"""

from __future__ import annotations

import contextlib
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Line, Report
from benchmarks.timing import Timing

ROOT = Path(__file__).resolve().parents[1]
REVISION = "8587fabf"  # before preparing counted rows, answers were columns and ledgers had checkpoints
ROUNDS = 3
MAX_TURN_SECONDS = 90.0  # a turn that takes longer is stopped; its figure is at least this
ENOUGH_SECONDS = 60.0  # no further round once all turns of a case took so long
MAX_MAKING_SECONDS = 300.0
GROUP = "Before and after, seconds of processor: the code of {0} and the present one in turns, each in its own process"


class Side:
    """One code at work on a case: a process that does what it is told, a turn at a time."""

    def __init__(self, source: Path, number: int, folder: Path) -> None:
        folder.mkdir()
        words = [sys.executable, "-m", "benchmarks.before", "--turns", str(number), str(folder), str(source)]
        environment = os.environ | {"PYTHONPATH": str(source)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, env=environment, cwd=ROOT, text=True, bufsize=1, **pipes)
        self.figures: list[float] = []
        self.gigabytes = 0.0
        self.stopped = False

    def made(self) -> None:
        """Wait until its data is there."""
        self._told(MAX_MAKING_SECONDS)

    def turn(self) -> float:
        """One turn; the seconds it took."""
        begun = time.perf_counter()
        print("turn", file=self._process.stdin)
        told = self._told(MAX_TURN_SECONDS)
        self.stopped = told is None
        if told is None:
            self.figures.append(MAX_TURN_SECONDS)
        else:
            figure, self.gigabytes = map(float, told.split())
            self.figures.append(figure)
        return time.perf_counter() - begun

    def _told(self, seconds: float) -> str | None:
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self._process.kill()
            return None
        told = self._process.stdout.readline()
        if not told:
            raise RuntimeError("a side ended; its error stands above")
        return told

    def over(self, kind: type[Timing]) -> Timing:
        """The rounds together."""
        return kind(statistics.median(self.figures), min(self.figures), max(self.figures))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def turns(number: int, folder: Path, source: Path) -> None:
    """The process of one side: make the case, then a turn for each line that comes."""
    import sulq
    from benchmarks.before_cases import CASES

    if not Path(sulq.__file__).is_relative_to(source):
        raise RuntimeError(f"{sulq.__file__} is not the code that is meant")
    run = CASES[number].make(folder)
    print("made", flush=True)
    for _ in sys.stdin:
        begun = time.process_time()
        told = run()
        figure = told if isinstance(told, float) else time.process_time() - begun
        status = Path("/proc/self/status").read_text(encoding="ascii")
        print(figure, int(status.partition("VmHWM:")[2].split()[0]) / 1e6, flush=True)


@contextlib.contextmanager
def taken_out(revision: str) -> Iterator[Path]:
    """The sources of a revision, in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="sulq-before-") as name:
        place = Path(name) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), revision], check=True)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def before(report: Report, revision: str = REVISION, words: tuple[str, ...] = ()) -> None:
    """Every case whose name has one of the words, or all."""
    from benchmarks.before_cases import CASES

    group, memory = GROUP.format(revision), []
    with taken_out(revision) as earlier:
        for number, case in enumerate(CASES):
            if words and not any(word in case.what for word in words):
                continue
            with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name, contextlib.ExitStack() as stack:
                sides = [Side(source, number, Path(name) / where) for where, source in _sources(earlier)]
                for side in sides:
                    stack.callback(side.close)
                    side.made()
                spent = 0.0
                while spent < ENOUGH_SECONDS and len(sides[0].figures) < ROUNDS and not sides[1].stopped:
                    spent += sum(side.turn() for side in sides)
            now, then = sides
            at_least = ", before at least" if then.stopped else ""
            report.add(group, Line(case.what + at_least, now.over(case.kind), then.over(case.kind), round(case.bar, 3)))
            memory.append(f"{case.what}: {now.gigabytes:.2f} GB, before {then.gigabytes:.2f} GB")
    report.note(group, f"Memory at most. {'; '.join(memory)}.")


def _sources(earlier: Path) -> tuple[tuple[str, Path], ...]:
    return ("now", ROOT / "src"), ("then", earlier)


def main(words: list[str]) -> None:
    """This part by itself, or one side of it."""
    if words[:1] == ["--turns"]:
        turns(int(words[1]), Path(words[2]), Path(words[3]))
    else:
        before(Report(), *words[:1], tuple(words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
