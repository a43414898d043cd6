"""How much must be right: lines of the kernel by room, of what else is trusted, and what sees rows imports.

`python -m tools.lines` prints them (`make lines`) and fails where a room is larger than its budget. A budget is
today's figure, or the aim once it is reached: a change that needs more says so here, where a reviewer sees it.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SRC: Final = ROOT / "src" / "sulq"

CERTIFIER: Final = ("moves", "relations", "tree", "values")
FOLDS: Final = ("matrix", "programs")
ASKING: Final = ("layout", "price", "request", "run")
NOISE: Final = ("coins", "entropy", "laws")


@dataclass(frozen=True)
class Room:
    """Files that are counted together: what they may come to, and what is aimed at."""

    name: str
    paths: tuple[str, ...]  # under src/sulq: files, or folders with all that lies in them
    budget: int | None = None
    aim: int | None = None


KERNEL: Final = (
    Room("facts, units and losses", ("kernel/facts.py",), 390, 350),
    Room("certifier", tuple(f"kernel/{name}.py" for name in CERTIFIER), 1199, 1199),
    Room("mechanisms", ("kernel/mechanisms", *(f"kernel/{name}.py" for name in NOISE)), 900, 900),
    Room("ledger", ("kernel/ledger",), 1160, 1100),
    Room("folds", tuple(f"kernel/{name}.py" for name in FOLDS), 720, 650),
    Room("order of an ask", tuple(f"kernel/{name}.py" for name in ASKING), 1025, 950),
    Room("scores", ("kernel/scores.py",), 400, 400),
    Room("rest", ("kernel",), 500, 500),  # what no other room of the kernel holds
)
WHOLE: Final = Room("kernel", ("kernel",), 5999, 5999)
ANNEX: Final = Room("annex (statistics of whole tables)", ("kernel/whole",), 999, 999)
RESPONDENT: Final = "coins diary methods record respondent"
GUARD: Final = "clerk/access clerk/worker_pool sandbox/isolation worker/main"
LEDGERS: Final = (
    "anchor checkpoints full_check opening postgres_place sources"  # whose ledger it is, and that it is the newest
)
RUNNING: Final = (
    "duckdb/connection duckdb/early_rows duckdb/runner fold postgres/engine spark/chunks spark/runner spark/work"
)
DECODING: Final = Room("decoding of sources", ("sources/decode",), 800, 800)
OTHERS: Final = (
    Room("respondent", tuple(f"local/{name}.py" for name in RESPONDENT.split())),
    Room(
        "clerk-side guard",
        (
            *(f"service/{name}.py" for name in GUARD.split()),
            *(f"curator/ledger/{name}.py" for name in LEDGERS.split()),
        ),
    ),
    Room("where certified text runs", tuple(f"sources/{name}.py" for name in RUNNING.split())),
)
SEES_ROWS: Final = ("curator/run.py", "sources", "service/worker/main.py")


def files(*paths: str) -> set[Path]:
    """The Python files at these places; none where there is no such place yet."""
    found: set[Path] = set()
    for path in paths:
        place = SRC / path
        found |= set(place.rglob("*.py")) if place.is_dir() else ({place} if place.is_file() else set())
    return found


def lines(paths: set[Path]) -> int:
    """How many lines files have together."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def rooms() -> dict[str, int]:
    """The lines of each room of the kernel, of all of it without the annex, of the annex and of decoding."""
    kernel = files("kernel") - files(*ANNEX.paths)
    found: dict[str, int] = {}
    left = set(kernel)
    for room in KERNEL:
        own = left if room.name == "rest" else left & files(*room.paths)
        found[room.name] = lines(own)
        left = left - own
    beside = {room.name: lines(files(*room.paths)) for room in (ANNEX, DECODING)}
    return found | {WHOLE.name: lines(kernel)} | beside


def imported(path: Path) -> set[Path]:
    """The files of sulq that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    found: set[Path] = set()
    for name in names:
        package, *parts = name.split(".")
        place = SRC.joinpath(*parts)
        if package == "sulq" and parts:
            found |= {file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()}
    return found


def closure(start: set[Path]) -> set[Path]:
    """These files and all they import, directly or not."""
    found, front = set(start), list(start)
    while front:
        new = imported(front.pop()) - found
        found |= new
        front += new
    return found


def exceeded(found: dict[str, int]) -> list[str]:
    """The rooms that are larger than their budgets."""
    return [
        f"{room.name}: {found[room.name]} lines, {room.budget} allowed"
        for room in (*KERNEL, WHOLE, ANNEX, DECODING)
        if room.budget is not None and found[room.name] > room.budget
    ]


def main() -> int:
    """Print all figures; 1 if the kernel or decoding has grown past its budget."""
    found = rooms()
    for room in (WHOLE, *KERNEL, ANNEX, DECODING):
        name = f"  {room.name}" if room in KERNEL else room.name
        print(f"{name:36}{found[room.name]:7,}   allowed {room.budget:6,}   aim {room.aim:6,}")
    for room in OTHERS:
        aim = "" if room.aim is None else f"   {'':14}   aim {room.aim:6,}"
        print(f"{room.name:36}{lines(files(*room.paths)):7,}{aim}")
    sees = closure(files(*SEES_ROWS))
    print(f"{'what sees rows, with its imports':36}{lines(sees):7,}")
    print(f"{'  of it outside the kernel':36}{lines(sees - files('kernel')):7,}")
    grown = exceeded(found)
    for line in grown:
        print(f"past its budget: {line}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
