"""The same answer of many groups through every door: Python, SQL, HTTP, the remote client, the console, `sulq query`.

Seconds of processor: of this process, of the service's and of what it started, together. SQL is compared with a count
by groups at the same door, and every door with `db.count` in process: what a door itself adds, which is HTTP, JSON, a
page or a process of its own, is told beside them.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sulq
from benchmarks.report import Line, Report
from benchmarks.server import Served, logged, served, used
from benchmarks.timing import Timing
from sulq import Epsilon

ROUNDS = 5
ASKS = 3
SIZES = {65_000: (ROUNDS, ASKS), 1_000_000: (1, 1)}  # groups, and how many rounds and asks a round each door has
BAR = 2.0
GROUP = "The same answer at every door, seconds of processor"
AGAINST = {
    "db.sql": "db.count",
    "db.sql, a stored answer": "db.count",
    "db.sql to_pandas": "its frame",
    "db.sql to_arrow": "its frame",
    "remote SQL": "remote count",
    "remote SQL, a stored answer": "remote count",
    "remote SQL to_pandas": "remote count",
    "HTTP JSON": "remote count",
    "console page": "HTTP JSON",
    "sulq query of a URL": "remote count in a process of its own",
}
IN_PROCESS = (
    "db.sql to_pandas",
    "db.sql to_arrow",
    "remote SQL",
    "remote SQL, a stored answer",
    "HTTP JSON",
    "console page",
)
ADDED = {"HTTP": "remote count", "a process of its own": "remote count in a process of its own"}
ROWS = 1_000_000
SQL = "SELECT k, COUNT(*) AS n FROM survey GROUP BY k"
SPEND = Epsilon(0.1)
ORIGIN = {"Sec-Fetch-Site": "same-origin"}
COUNTED = """import sys, sulq
db = sulq.connect(sys.argv[1], token=sys.argv[2])
db.count(by=["k"], spend=sulq.Epsilon(0.1), fresh=True)
"""
KINDS = ("whole numbers", "categories")


def written(folder: Path, groups: int, kind: str) -> tuple[Path, dict[str, object]]:
    """A million rows of so many declared keys, and their declaration."""
    drawn = np.random.default_rng(1).integers(0, groups, size=ROWS)
    texts = kind == "categories"
    path = folder / "survey.parquet"
    pq.write_table(pa.table({"k": pa.array([f"key{i}" for i in drawn.tolist()]) if texts else drawn}), path)
    return path, {"k": sulq.Category([f"key{i}" for i in range(groups)]) if texts else sulq.Int(0, groups - 1)}


class Console:
    """A browser of sorts, signed in."""

    def __init__(self, port: int, token: str) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)
        self._headers = ORIGIN | {"Origin": f"http://127.0.0.1:{port}"}
        self._post("/sign-in", token=token)
        self._word = unescape(re.findall(r'name="form" value="([^"]+)"', self.http.get("/datasets").text)[0])

    def _post(self, path: str, **fields: str) -> str:
        reply = self.http.post(path, data=fields, headers=self._headers)
        if reply.status_code >= 400:
            raise RuntimeError(f"{path}: {reply.status_code} {reply.text[-3000:]}")
        return reply.text

    def ask(self) -> str:
        """The page of the answer."""
        asked = {"by": "price", "amount": "0.1", "fresh": "yes", "sql": SQL}
        return self._post("/datasets/survey/ask", form=self._word, **asked)


def _served(service: Served) -> dict[str, Callable[[], object]]:
    """Every way to a served dataset."""
    url, token = f"http://127.0.0.1:{service.port}", service.tokens[0]
    remote, console = sulq.connect(f"{url}/survey", token=token), Console(service.port, token)
    plain = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=600)
    body = {"sql": SQL, "spend": {"epsilon": 0.1}, "fresh": True}
    command = [sys.executable, "-c", "from sulq.cli import main; main()", "query", f"{url}/survey", SQL]
    alone = [sys.executable, "-c", COUNTED, f"{url}/survey", token]

    def post() -> object:
        reply = plain.post("/v1/datasets/survey/sql", json=body)
        if reply.status_code != 200:
            raise RuntimeError(reply.text[:1000])
        return reply.content

    def query() -> object:
        environment = os.environ | {"SULQ_TOKEN": token}
        words = [*command, "--epsilon", "0.1", "--fresh", "--format", "csv"]
        return subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE).stdout

    return {
        "remote count": lambda: remote.count(by=["k"], spend=SPEND, fresh=True).value,
        "remote SQL": lambda: remote.sql(SQL, spend=SPEND, fresh=True).columns,
        "remote SQL to_pandas": lambda: remote.sql(SQL, spend=SPEND, fresh=True).to_pandas(),
        "remote SQL, a stored answer": lambda: remote.sql(SQL, spend=SPEND).columns,
        "HTTP JSON": post,
        "console page": console.ask,
        "sulq query of a URL": query,
        "remote count in a process of its own": lambda: subprocess.run(alone, check=True),
    }


def _local(path: Path, columns: dict[str, object], folder: Path) -> sulq.Database:
    db = sulq.connect(path, columns=columns, budget=Epsilon(900), synthetic=True, ledger=folder / "own.ledger")
    db.prepare()
    return db


def _in_process(db: sulq.Database) -> dict[str, Callable[[], object]]:
    """Every way in this process."""
    return {
        "db.count": lambda: db.count(by=["k"], spend=SPEND, fresh=True),
        "its frame": lambda: db.count(by=["k"], spend=SPEND, fresh=True).to_pandas(),
        "db.sql": lambda: db.sql(SQL, spend=SPEND, fresh=True),
        "db.sql, a stored answer": lambda: db.sql(SQL, spend=SPEND),
        "db.sql to_pandas": lambda: db.sql(SQL, spend=SPEND, fresh=True).to_pandas(),
        "db.sql to_arrow": lambda: db.sql(SQL, spend=SPEND, fresh=True).to_arrow(),
    }


def work(service: Served) -> float:
    """Seconds of processor so far, of all that takes part."""
    own, children = os.times()[:2], os.times()[2:4]
    return sum(own) + sum(children) + sum(used(service.pids).values())


def timed(run: Callable[[], object], service: Served, rounds: int = ROUNDS, asks: int = ASKS) -> Timing:
    """A door, after one warm-up; several asks a round, as the processor's time is told in hundredths of a second."""
    run()
    seconds = []
    for _ in range(rounds):
        begun = work(service)
        for _ in range(asks):
            run()
        seconds.append((work(service) - begun) / asks)
    return Timing(statistics.median(seconds), min(seconds), max(seconds))


def doors(report: Report, folder: Path, sizes: Mapping[int, tuple[int, int]] = SIZES) -> None:
    """So many groups at every door, against a count at the same door and against `db.count` in process."""
    for groups, (rounds, asks) in sizes.items():
        for kind in KINDS:
            with _opened(folder, groups, kind) as (service, ways):
                found = {what: timed(run, service, rounds, asks) for what, run in ways.items()}
            for what, baseline in (*AGAINST.items(), *((what, "db.count") for what in IN_PROCESS)):
                line = Line(f"{groups:,} {kind}: {what}, against {baseline}", found[what], found[baseline], BAR)
                report.add(GROUP, line)
            report.note(GROUP, f"{groups:,} {kind}: {added(found)}.")


def added(found: Mapping[str, Timing]) -> str:
    """What each door takes by itself: the same count through it, less the count in process."""
    own = found["db.count"].median
    told = [f"{door} adds {found[way].median - own:.3f} s" for door, way in ADDED.items()]
    page = found["console page"].median - found["HTTP JSON"].median
    return (
        f"`db.count` takes {own:.3f} s; {', '.join(told)} to a count; the console's page adds {page:.3f} s to its JSON"
    )


@contextlib.contextmanager
def _opened(folder: Path, groups: int, kind: str) -> Iterator[tuple[Served, dict[str, Callable[[], object]]]]:
    """A service over so many groups, and every way to ask for them."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="doors-") as name:
        home = Path(name)
        path, columns = written(home, groups, kind)
        served_here = served(home / "served", path, columns=columns)
        with logged(home / "log"), served_here as service, _local(path, columns, home) as db:
            yield service, _in_process(db) | _served(service)


def main() -> None:
    """This part by itself."""
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        doors(Report(), Path(name))


if __name__ == "__main__":
    main()
