"""What one analyst's free calls take from another's asks, and from the processor, beside an ask of the same run.

    python -m benchmarks.free_calls

Eight connections of one analyst plan, explain and read facts as fast as they are let; another analyst asks meanwhile.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from benchmarks import data
from benchmarks.crowd import bodies
from benchmarks.report import Line, Report
from benchmarks.server import Served, logged, served, used
from benchmarks.timing import Timing

ROWS = 100_000
LOOPS = 8
ROUNDS, ASKS = 5, 100
BURST_SECONDS = 30.0
PAUSE_SECONDS = 2.0  # between rounds, as asks are counted too
SLOWER = 1.3  # times as long as alone, at most
PLAN_SECONDS = 1.0
OF_AN_ASK = 150.0  # asks' worth of processor that a plan of 32 queries may take
RATE = 1200  # calls a minute: the server's own
GROUP = f"Free calls: {LOOPS} connections of one analyst in a loop, beside another analyst's asks over HTTP"
KINDS = (
    "SELECT region, COUNT(*) FROM survey GROUP BY region",
    "SELECT AVG(income) FROM survey WHERE age < {}",
    "SELECT region, AVG(income) FROM survey WHERE age > {} GROUP BY region",
    "SELECT MEDIAN(income) FROM survey WHERE age > {}",
    "SELECT COUNT(*) FROM survey WHERE income < {}",
    "SELECT VARIANCE(income) FROM survey WHERE age < {}",
    "SELECT age, COUNT(*) FROM survey WHERE income > {} GROUP BY age",
    "SELECT SUM(income) FROM survey WHERE age > {}",
)
QUERIES = [KINDS[i % len(KINDS)].format(i + 1) for i in range(32)]
PLAN = {"queries": QUERIES, "spend": {"epsilon": 1}}
EXPLAIN = {"sql": KINDS[2].format(30), "spend": {"epsilon": 0.01}}


def caller(service: Served, number: int) -> httpx.Client:
    """An analyst's connection."""
    headers = {"Authorization": f"Bearer {service.tokens[number]}", "Content-Type": "application/json"}
    return httpx.Client(base_url=f"http://127.0.0.1:{service.port}/v1/datasets", headers=headers, timeout=120)


def asks(http: httpx.Client, first: int, count: int) -> list[float]:
    """Seconds that each of so many asks took; nobody asked them before."""
    before, after = bodies()
    taken = []
    for number in range(first, first + count):
        begun = time.perf_counter()
        http.post("/survey/ask", content=f"{before}{number / 10:.1f}{after}").raise_for_status()
        taken.append(time.perf_counter() - begun)
    return taken


@contextlib.contextmanager
def looping(service: Served, statuses: list[int]) -> Iterator[None]:
    """Eight connections of the second analyst: four plan, two explain, two read facts; refused ones go on at once."""
    stop = threading.Event()

    def loop(number: int) -> None:
        with caller(service, 1) as http:
            while not stop.is_set():
                if number < 4:
                    reply = http.post("/survey/plan", json=PLAN)
                else:
                    reply = http.post("/survey/explain", json=EXPLAIN) if number < 6 else http.get("/survey")
                statuses.append(reply.status_code)
                stop.wait(0.02 if reply.status_code == 429 else 0)

    crowd = [threading.Thread(target=loop, args=(number,)) for number in range(LOOPS)]
    for thread in crowd:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in crowd:
            thread.join()


def work(service: Served, act: Callable[[], object], count: int) -> float:
    """Seconds of processor of all parts for one call."""
    before = sum(used(service.pids).values())
    for _ in range(count):
        act()
    return (sum(used(service.pids).values()) - before) / count


def spread(found: list[float]) -> Timing:
    """The median round, and the ends."""
    return Timing(statistics.median(found), min(found), max(found))


def free_calls(report: Report, folder: Path) -> None:
    """Asks alone and beside the loops, in turns; then the processor that a plan takes, beside an ask's."""
    path = data.survey(folder / "free.parquet", ROWS)
    alone, beside, statuses = [], [], []
    with served(folder / "open", path) as service, caller(service, 0) as http:
        asks(http, 0, 20)
        http.post("/survey/plan", json=PLAN).raise_for_status()
        asked = spread([work(service, lambda n=n: asks(http, 10**5 + n * ASKS, ASKS), 1) / ASKS for n in range(3)])
        planned = spread([work(service, lambda: http.post("/survey/plan", json=PLAN), 1) for _ in range(3)])
        unbounded = statistics.median(asks(http, 2 * 10**5, ASKS))
        with looping(service, []):
            time.sleep(0.2)
            unbounded = statistics.median(asks(http, 3 * 10**5, ASKS)) / unbounded
    with served(folder / "fair", path, limits={"rate": RATE}) as service, caller(service, 0) as http:
        asks(http, 0, 20)
        for turn in range(ROUNDS):
            time.sleep(PAUSE_SECONDS)
            alone.append(statistics.median(asks(http, (2 * turn + 1) * 1000, ASKS)))
            time.sleep(PAUSE_SECONDS)
            these: list[int] = []
            with looping(service, these):
                until = time.monotonic() + BURST_SECONDS
                while 429 not in these and time.monotonic() < until:  # what a principal may take at once is taken
                    time.sleep(0.05)
                beside.append(statistics.median(asks(http, (2 * turn + 2) * 1000, ASKS)))
            statuses += these
    report.add(GROUP, Line("an ask beside eight loops, against one alone", spread(beside), spread(alone), SLOWER))
    report.add(GROUP, Line("processor of a plan of 32 queries, against an ask", planned, asked, OF_AN_ASK))
    met = "met" if planned.median <= PLAN_SECONDS else "not met"
    told = f"A plan of 32 queries takes {planned.median:.2f} s of processor; at most {PLAN_SECONDS:.0f} s: {met}."
    answered, refused = statuses.count(200), statuses.count(429)
    told += f" Without limits the loops make an ask {unbounded:.1f} times slower."
    report.note(GROUP, f"{told} With them {answered} were answered and {refused} refused (`rate-limited`).")


def main() -> None:
    """This part by itself."""
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name, logged(Path(name) / "log"):
        free_calls(Report(), Path(name))


if __name__ == "__main__":
    main()
