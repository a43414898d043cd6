"""The demo's second act: the console over made-up people, for an owner and two analysts, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from sulq.cli.show import console
from sulq.cli.survey import COLUMNS
from sulq.cli.tokens import hand_over
from sulq.language.privacy import Epsilon, Unit

if TYPE_CHECKING:
    from sulq.service.supervisor.main import Supervisor

PORT: Final = 8765
PATIENCE: Final = 120.0  # seconds to prepare the rows
SHARES: Final = {"alice": (0.6, 0.25), "bob": (0.6, 0.25)}  # neither can spend it all, nor take the other's quarter
QUERY: Final = "SELECT city, AVG(pressure) FROM survey GROUP BY city"


def serve_console(folder: Path, people: pa.Table, *, clinic: pa.Table) -> None:
    """Serve a survey, print where and with which tokens, and stay until Ctrl-C; `clinic` is there to be registered."""
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
        tokens["auditor"] = access.add("ann", "auditor")
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
        if time.monotonic() - begun > PATIENCE:
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
