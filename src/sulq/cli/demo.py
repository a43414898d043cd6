"""`sulq demo`: the whole story on made-up people, in the terminal; then the console in a browser."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.markup import escape

from sulq.answers.answer import Answer
from sulq.api.connect import connect
from sulq.cli.show import console
from sulq.cli.survey import COLUMNS, survey
from sulq.errors import SulqError
from sulq.language.privacy import Epsilon, Unit
from sulq.language.rowfn import col

PEOPLE = 100_000


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
        from sulq.cli.demo_console import serve_console  # the server's parts are loaded only now

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
