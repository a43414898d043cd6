"""`sulq demo`: the whole story on made-up people, in the terminal; then the console in a browser, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.markup import escape

from sulq.answers.answer import Answer
from sulq.api.connect import connect
from sulq.cli.show import console, hand_over
from sulq.errors import SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real
from sulq.language.privacy import Epsilon, Unit
from sulq.language.rowfn import col

if TYPE_CHECKING:
    from sulq.service.supervisor.main import Supervisor

PEOPLE = 100_000
CITIES = ("Haifa", "Jerusalem", "Lod", "Nazareth", "Yafo")
COLUMNS: dict[str, Column] = {
    "age": Int(0, 110),
    "city": Category(CITIES),
    "smoker": Bool(),
    "income": Real(0, 300_000),
    "visit": Date("2024-01-01", "2025-12-31"),
    "pressure": Int(60, 220),
    "cost": Real(0, 20_000),
}
PORT: Final = 8765
MAX_START_SECONDS: Final = 120.0  # seconds to prepare the rows
SHARES: Final = {"alice": (0.6, 0.25), "bob": (0.6, 0.25)}  # neither can spend it all, nor take the other's quarter
QUERY: Final = "SELECT city, AVG(pressure) FROM survey GROUP BY city"


def demo() -> None:
    """Ask a made-up survey of 100,000 people a handful of questions, then serve the console (DEMO_ONCE=1: do not)."""
    folder = Path(tempfile.mkdtemp(prefix="sulq-demo-"))
    _say("The owner", "has a health survey: 100,000 made-up people, one to four visits each.")
    data = folder / "survey.parquet"
    pq.write_table(survey(PEOPLE, np.random.default_rng()), data)
    console.print(
        '  db = sulq.connect("survey.parquet", columns={"age": sulq.Int(0, 110), ...},\n'
        '                    unit=sulq.Unit("respondent", rows=4), budget=sulq.Epsilon(1.5))'
    )
    start = time.perf_counter()
    with connect(data, columns=COLUMNS, unit=Unit("respondent", rows=4), budget=Epsilon(1.5), synthetic=True) as db:
        db.prepare()
        took = time.perf_counter() - start
        console.print(f"  [dim]prepared in {took:.1f} s; whoever a person is, all their visits hide together[/]")
        _say("The analyst", "asks; every answer has an error bar and a price.")
        smoker, older = col("smoker"), col("age") >= 65
        _show("db.count(col('age') >= 65, spend=Epsilon(0.1))", db.count(older, spend=Epsilon(0.1)))
        _show("db.count(by='city', spend=Epsilon(0.1))", db.count(by="city", spend=Epsilon(0.1)))
        found = db.mean("pressure", by="smoker", spend=Epsilon(0.2))
        _show("db.mean('pressure', by='smoker', spend=Epsilon(0.2))", found)
        _show("db.std('pressure', spend=Epsilon(0.2))", db.std("pressure", spend=Epsilon(0.2)))
        found = db.sum("cost", where=smoker, spend=Epsilon(0.2))
        _show("db.sum('cost', where=col('smoker'), spend=Epsilon(0.2))", found)
        _show("db.histogram('age', bins=11, spend=Epsilon(0.1))", db.histogram("age", bins=11, spend=Epsilon(0.1)))
        _show(
            "db.count(col('visit') >= '2025-07-01', within=100)   # name the accuracy, get the price",
            db.count(col("visit") >= "2025-07-01", within=100, beta=0.05),
        )
        _say("The curator", "refuses what it cannot answer privately, and what was not paid for; both are free.")
        _refused("db.mean('salary', spend=Epsilon(0.1))", lambda: db.mean("salary", spend=Epsilon(0.1)))
        _refused("db.sum('cost', spend=Epsilon(1))", lambda: db.sum("cost", spend=Epsilon(1)))
        console.print(f"\n  spent {db.spent}, left {db.remaining}")
        ledger = folder / "survey.ledger"
    _say("The ledger", f"lies in {ledger}")
    console.print(f"  look at it: sulq ledger show {ledger}\n  check it:   sulq ledger verify {ledger}")
    if os.environ.get("DEMO_ONCE") != "1":
        _say("The server", "opens the console for an owner and two analysts, over a survey of other made-up people.")
        random = np.random.default_rng()
        serve_console(folder, survey(PEOPLE, random), clinic=survey(max(PEOPLE // 10, 1), random))


def _say(who: str, what: str) -> None:
    console.print(f"\n[bold]{who}[/] {what}")


def _show(call: str, answer: Answer) -> None:
    console.print(f"\n  [cyan]{call}[/]")
    for line in repr(answer).splitlines():
        console.print(f"    {line}", markup=False)


def _refused(call: str, ask: Callable[[], Answer]) -> None:
    console.print(f"\n  [cyan]{call}[/]")
    try:
        ask()
    except SulqError as error:
        console.print(f"    [yellow]{error.code}[/]: {escape(error.message)} {escape(error.remedy)}")


def survey(people: int, random: np.random.Generator) -> pa.Table:
    """A table of visits; age, city and smoking hang together with blood pressure, income and cost."""
    age = (108 * random.beta(1.5, 2.6, people)).round()
    city = random.choice(len(CITIES), people, p=(0.24, 0.36, 0.08, 0.12, 0.20))
    smoker = random.random(people) < np.where((age > 17) & (age < 70), 0.24 - 0.03 * (city == 1), 0.06)
    wealth = np.array([1.0, 0.92, 0.78, 0.74, 1.22])[city]
    income = np.clip(random.lognormal(11.0, 0.62, people) * wealth * (age > 17), 0, 300_000)
    person = np.repeat(np.arange(people), random.choice([1, 2, 3, 4], people, p=(0.55, 0.25, 0.14, 0.06)))
    rows = len(person)
    pressure = 104 + 0.42 * age[person] + 7.5 * smoker[person] + random.normal(0, 13, rows)
    cost = np.clip(random.lognormal(6.0 + 0.012 * age[person] + 0.25 * smoker[person], 0.8, rows), 0, 20_000)
    day = np.datetime64("2024-01-01") + random.integers(0, 731, rows).astype("timedelta64[D]")
    unknown = random.random(rows) < 0.02  # some readings are missing, as in life
    return pa.table(
        {
            "respondent": person,
            "age": age[person].astype(np.int32),
            "city": pa.array(np.array(CITIES)[city[person]]),
            "smoker": smoker[person],
            "income": income[person].round(2),
            "visit": pa.array(day),
            "pressure": pa.array(np.clip(pressure, 60, 220).round().astype(np.int32), mask=unknown),
            "cost": cost.round(2),
        }
    )


def serve_console(folder: Path, people: pa.Table, *, clinic: pa.Table) -> None:
    """Serve a survey, print where and with which tokens, and stay until Ctrl-C; `clinic` is there to be registered."""
    # The server's parts are loaded only now.
    from sulq.service.clerk.access import Access
    from sulq.service.clerk.registration import declare
    from sulq.service.settings import Service
    from sulq.service.supervisor.main import Supervisor

    data = folder / "data"
    data.mkdir()
    pq.write_table(people, data / "survey.parquet")
    pq.write_table(clinic, data / "clinic.parquet")
    declared = declare(
        "survey",
        data / "survey.parquet",
        COLUMNS,
        unit=Unit("respondent", rows=4),
        budget=Epsilon(2.0),
        synthetic=True,
        ledger=folder / "console.ledger",
        shares=SHARES,
    )
    service = Service(folder / "state", port=_free(PORT), data_root=data)
    with Access(service.access) as access:
        tokens = {"owner": access.add("olga", "owner")}
        tokens |= {name: access.add(name, "analyst", ["survey"]) for name in SHARES}
        tokens["auditor"] = access.add("ann", "auditor", "all")
    with _apart(folder / "server.log"):
        supervisor = Supervisor(service, [declared])
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.stop())
        supervisor.start()
        threading.Thread(target=_tell, args=(supervisor, tokens, folder / "tokens"), daemon=True).start()
        supervisor.run()
    console.print("\nThe console is closed.")


def _tell(supervisor: Supervisor, tokens: dict[str, str], place: Path) -> None:
    """Say where it is once it can be asked; where nobody looks at a terminal, the tokens go into a file."""
    url = f"http://127.0.0.1:{supervisor.port}"
    begun = time.monotonic()
    while not _ready(url, tokens["owner"]):
        if time.monotonic() - begun > MAX_START_SECONDS:
            console.print("  the server did not become ready; its log says why")
            supervisor.stop()
            return
        time.sleep(0.2)
    console.print(f"\n[bold]The console[/] is open: [bold cyan]{url}[/]\n\n  sign in with one of these tokens:")
    hand_over(tokens, place, console)
    call = f'sulq.connect("{url}/survey", token=...).sql("{QUERY}", spend=...)'
    console.print(f"\n  or from Python:  {call}", markup=False, soft_wrap=True)
    console.print("  the owner can register clinic.parquet too\n  Ctrl-C ends it")


def _ready(url: str, token: str) -> bool:
    import httpx

    try:
        reply = httpx.get(f"{url}/v1/datasets", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        return reply.status_code == 200 and all(found["ready"] for found in reply.json()["datasets"])
    except httpx.HTTPError:
        return False


def _free(port: int) -> int:
    """The port, or 0 for any other where it is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


@contextlib.contextmanager
def _apart(log: Path) -> Iterator[None]:
    """Have the server's processes write their log to a file, so that the story stays readable."""
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
