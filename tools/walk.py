"""Walk four questions through the code and count the files they enter and the moves between files.

    python -m tools.walk            print the table
    python -m tools.walk --write    and write it into docs/contribute/walks.md
    python -m tools.walk --files "SQL join"    and list that walk's files, in the order they are entered

A walk is made several times in one process. The first one also imports modules and fills caches. Of the others
the one with the fewest moves counts, since a clerk's or an engine's background thread may be seen in some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.trace import MARK, Trace

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "contribute" / "walks.md"
RUNS: Final = 4  # of each walk: a cold one and three warm ones
PATIENCE_SECONDS: Final = 60.0  # for a process to hear a signal
SPEND: Final = 0.01  # epsilon of each ask; how much has no influence on the way
CITIES: Final = ("Haifa", "Lod", "Yafo")
# Files and moves by this tool on the code before the kernel (74,501 lines), on that of the day
# when the rooms were made (82,574 lines), and the aim in files; None where there is no figure.
BEFORE: Final = {
    "count by city": ((57, 210), (72, 471), 25),
    "SQL join": ((88, 1654), (102, 3045), 45),
    "HTTP ask": (None, (83, 696), 45),
    "k-means fit": ((89, 5479), (94, 7422), 45),
}


HEAD: Final = """# Four walks through the code

How many files of `src/sulq` one question enters, and how many calls lead from one of these files into another
(files / moves). Written by `python -m tools.walk --write`; `tests/test_walk.py` fails where a walk becomes a tenth
longer than it is here. `--files "SQL join"` lists the files of a walk.

| walk | before the kernel | before the rooms | now | depth | first time | aim (files) |
|---|---:|---:|---:|---:|---:|---:|
{rows}

- **Count by city**: `db.count(by="city", spend=...)` in Python on a table with persons, two rows each.
- **SQL join**: `db.sql(...)` that joins two private tables and a public one, with a mean and a condition, by zone.
- **HTTP ask**: `POST /v1/datasets/survey/ask` with a count by city. All processes of the service are traced: {parts}.
  A file that two processes enter is one file.
- **k-means fit**: `KMeans(n_clusters=3).fit(...)` on two columns: its rounds are asks, so files count once and moves
  add up.

Figures are of a later run in a process, when modules are loaded and caches are filled. The first run is the column
"first time": it also enters what is computed once (the plan of the question and its certificate, compiled programs,
tables of noise), and runs the module bodies of what is imported late.

Depth is the number of frames of `src/sulq` on the stack at the deepest point. A return is not counted as a move, and
neither are frames of libraries.
"""


@dataclass(frozen=True)
class Walk:
    """What one walk entered."""

    files: Mapping[str, str]  # in the order they were entered, each with its first function
    moves: int
    depth: int


def of(told: Mapping[str, Any]) -> Walk:
    """A trace as a walk."""
    return Walk(told["files"], told["moves"], told["depth"])


def together(walks: Mapping[str, Walk]) -> Walk:
    """Several processes' parts of one walk."""
    parts = walks.values()
    files = {name: entry for part in parts for name, entry in part.files.items()}
    return Walk(files, sum(part.moves for part in parts), max(part.depth for part in parts))


def traced(ask: Callable[[], object]) -> tuple[Walk, Walk]:
    """The first walk in this process, and the shortest of those after it."""
    found = []
    trace = Trace()
    for _ in range(RUNS):
        with trace.during():
            ask()
        found.append(of(trace.to_json()))
    return found[0], min(found[1:], key=lambda walk: walk.moves)


def people(rows: int = 2000) -> dict[str, list[object]]:
    """Made-up people, two rows each."""
    return {
        "person": [i // 2 for i in range(rows)],
        "age": [18 + i * 37 % 70 for i in range(rows)],
        "income": [i * 7919 % 100_000 for i in range(rows)],
        "city": [CITIES[i % 3] for i in range(rows)],
    }


@contextmanager
def opened() -> Iterator[Any]:
    """A table with persons, opened as its owner would."""
    import pyarrow as pa

    import sulq

    columns = {"age": sulq.Int(0, 120), "income": sulq.Int(0, 100_000), "city": list(CITIES)}
    with sulq.connect(
        pa.table(people()), columns=columns, unit=sulq.Unit("person", rows=2), budget=sulq.Epsilon(100), synthetic=True
    ) as db:
        yield db


def count_by_city() -> tuple[Walk, Walk]:
    """`db.count(by="city")` in Python, on a table with persons."""
    import sulq

    with opened() as db:
        return traced(lambda: db.count(by="city", spend=sulq.Epsilon(SPEND), fresh=True))


def sql_join() -> tuple[Walk, Walk]:
    """A join of two private tables and a public one, in SQL."""
    import pyarrow as pa

    import sulq

    rows = people()
    tables = {
        "visits": pa.table({"person": rows["person"], "cost": rows["income"], "city": rows["city"]}),
        "people": pa.table({"person": list(range(1000)), "age": rows["age"][:1000]}),
        "regions": pa.table({"city": list(CITIES), "zone": ["north", "south", "south"]}),
    }
    text = """
        SELECT r.zone, COUNT(*) AS visits, AVG(v.cost) AS mean
        FROM visits v JOIN people p ON v.person = p.person JOIN regions r ON v.city = r.city
        WHERE p.age >= 40 GROUP BY r.zone
    """
    with sulq.connect(
        tables,
        columns={
            "visits": {"cost": sulq.Int(0, 100_000), "city": list(CITIES)},
            "people": {"age": sulq.Int(0, 120)},
            "regions": {"city": list(CITIES), "zone": ["north", "south"]},
        },
        unit=sulq.Unit("person", rows=2),
        keys={"people": "person", "regions": "city"},
        public=["regions"],
        budget=sulq.Epsilon(100),
        synthetic=True,
    ) as db:
        return traced(lambda: db.sql(text, spend=sulq.Epsilon(SPEND), fresh=True))


def kmeans_fit() -> tuple[Walk, Walk]:
    """`KMeans(n_clusters=3).fit` on two columns of a table with persons."""
    import sulq
    from sulq.learn import KMeans

    with opened() as db:
        return traced(lambda: KMeans(n_clusters=3).fit(db[["age", "income"]], spend=sulq.Epsilon(1)))


def http_ask() -> tuple[dict[str, Walk], dict[str, Walk]]:
    """`POST /v1/datasets/survey/ask` with a count by city: the part of each process of the service."""
    import httpx

    import sulq
    from sulq.answers import wire
    from tests.service.service import service

    question = wire.to_json(sulq.Sums((sulq.lit(1),), by=(sulq.col("city"),)))
    body = {"question": question, "spend": wire.to_json(sulq.Epsilon(SPEND))}
    runs: list[dict[str, Walk]] = []
    with followed() as errors, service(web=1, workers=1) as running:
        asked = {name: pid for name, pid in running.supervisor.pids().items() if name != "jobs"}  # which no ask enters
        pids = {pid: name.partition("-")[0] for name, pid in asked.items()}
        headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
        with httpx.Client(base_url=running.url, headers=headers, timeout=300) as client:
            for _ in range(RUNS):
                told(errors, pids, signal.SIGUSR1)
                client.post("/v1/datasets/survey/ask", json=body).raise_for_status()
                runs.append({pids[each["pid"]]: of(each) for each in told(errors, pids, signal.SIGUSR2)})
    return runs[0], min(runs[1:], key=lambda walks: together(walks).moves)


@contextmanager
def followed() -> Iterator[Path]:
    """Let processes that are started follow signals; the file that gets what they write to standard error."""
    before = os.environ.get("PYTHONPATH", "")
    kept = os.dup(2)
    with tempfile.TemporaryDirectory(prefix="sulq-walk-") as folder:
        errors, site = Path(folder) / "errors", Path(folder) / "sitecustomize.py"
        site.write_text("from tools.trace import follow_signals\n\nfollow_signals()\n", encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, str(ROOT), before])
        with errors.open("ab") as out:
            os.dup2(out.fileno(), 2)
            try:
                yield errors
            finally:
                os.dup2(kept, 2)
                os.close(kept)
                os.environ["PYTHONPATH"] = before


def told(errors: Path, pids: Mapping[int, str], number: signal.Signals) -> list[dict[str, Any]]:
    """What processes write when they hear a signal."""
    before = len(errors.read_bytes())
    for pid in pids:
        os.kill(pid, number)
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        lines = errors.read_bytes()[before:].decode().splitlines()
        found = [json.loads(line.removeprefix(MARK)) for line in lines if line.startswith(MARK) and line.endswith("}")]
        if len(found) == len(pids):
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"{len(found)} of {len(pids)} processes answered")
        time.sleep(0.01)


def main() -> int:
    """Walk, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.walk", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--files", default="", help="print the files of this walk as well, such as 'SQL join'")
    options = parser.parse_args()
    found, http = walked()
    text = page(found, http)
    print(text)
    if options.files:
        cold, warm = found[options.files]
        for name, entry in cold.files.items():
            print(f"{name:45} {entry}{'' if name in warm.files else '  (the first time only)'}")
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


def walked() -> tuple[dict[str, tuple[Walk, Walk]], dict[str, Walk]]:
    """Each walk, cold and warm, and the warm one over HTTP by process."""
    cold, warm = http_ask()
    found = {
        "count by city": count_by_city(),
        "SQL join": sql_join(),
        "HTTP ask": (together(cold), together(warm)),
        "k-means fit": kmeans_fit(),
    }
    return found, warm


def page(found: Mapping[str, tuple[Walk, Walk]], http: Mapping[str, Walk]) -> str:
    """docs/contribute/walks.md."""
    rows = []
    for name, (cold, warm) in found.items():
        first, second, aim = BEFORE[name]
        cells = [name, shown(first), shown(second), f"**{shown((len(warm.files), warm.moves))}**", str(warm.depth)]
        rows.append(f"| {' | '.join([*cells, shown((len(cold.files), cold.moves)), str(aim)])} |")
    parts = "; ".join(f"{name} {len(walk.files)} files, {walk.moves:,} moves" for name, walk in http.items())
    return HEAD.format(rows="\n".join(rows), parts=parts)


def shown(figures: tuple[int, int] | None) -> str:
    """Files and moves, as a cell of the table."""
    return "-" if figures is None else f"{figures[0]} / {figures[1]:,}"


def recorded(text: str) -> dict[str, tuple[int, int]]:
    """Files and moves of each walk as the page says they are now."""
    found = re.findall(r"^\| ([^|]+) \|.*\*\*(\d+) / ([\d,]+)\*\*", text, re.MULTILINE)
    return {name: (int(files), int(moves.replace(",", ""))) for name, files, moves in found}


if __name__ == "__main__":
    sys.exit(main())
