"""A clerk in this process, for tests: the real table of calls and the real curator, without sockets or workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow

import sulq
from sulq.api.database import Database
from sulq.errors import AccessDenied, SetupError
from sulq.service import ipc
from sulq.service.clerk.access import Access
from sulq.service.clerk.calls import answer
from sulq.service.clerk.file_looks import noted_look
from sulq.service.clerk.readiness import Readiness
from sulq.service.clerk.standing import standing_of
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame
from sulq.service.logs import Counts
from sulq.service.settings import DatasetSettings, Service
from sulq.service.worker.file_look import seen
from sulq.service.worker.row_check import counted
from tests.service.near_jobs import NearJobs

LOOKED = {"columns": [{"name": "age", "type": "BIGINT", "suggests": "int"}]}
COLUMNS = {
    "age": sulq.Int(0, 120),
    "city": sulq.Category(["Haifa", "Lod", "Yafo"]),
    "income": sulq.Real(0, 1000),
}


def survey(budget: object = None, **options: object) -> Database:
    """Made-up people in memory."""
    frame = pyarrow.table(
        {
            "age": [(7 * i) % 90 for i in range(300)],
            "city": [("Haifa", "Lod", "Yafo")[i % 3] for i in range(300)],
            "income": [float((13 * i) % 1000) for i in range(300)],
        }
    )
    return sulq.connect(
        frame,
        table="survey",
        engine="memory",
        columns=COLUMNS,
        budget=budget or sulq.EpsilonDelta(1000, 1e-6),
        synthetic=True,
        **options,
    )


class Office:
    """What the table of calls needs of a clerk; `call` is what the application is given."""

    def __init__(self, folder: Path, **datasets: Database) -> None:
        self.access = Access(folder / "access.db")
        self.counts = Counts()
        self.databases = datasets
        self.datasets = {
            name: OpenDataset(name, ledger=db._ledger, curator=db._oracle, share_answers=True)
            for name, db in datasets.items()
        }
        self.data_root: Path | None = folder
        self.manager = self
        self.seen: list[str] = []
        self.service = Service(folder, rate=1_000_000)
        self.near = NearJobs(lambda frame: self.call(frame))  # noqa: PLW0108 - tests put another call in its place
        self.tokens = {"owner": self.access.add("owner", "owner")}
        for name, role in (("analyst", "analyst"), ("other", "analyst"), ("auditor", "auditor")):
            self.tokens[name] = self.access.add(name, role, ["survey"])  # a second dataset is the owner's alone

    def call(self, frame: Mapping[str, object]) -> Frame:
        """As over a socket: JSON there and back."""
        self.seen.append(json.dumps(frame))
        return json.loads(json.dumps(answer(self, json.loads(self.seen[-1])), allow_nan=False))

    def readiness(self) -> Frame:
        found = Readiness(self.datasets)
        found.look()
        return found.told()

    def health(self) -> Frame:
        return {
            "status": self.readiness()["status"],
            "datasets": {name: held.ready for name, held in self.datasets.items()},
        }

    def metrics(self) -> Frame:
        return {"version": "0", **self.counts.told(), "datasets": [standing_of(d, ()) for d in self.datasets.values()]}

    def look(self, path: Path, partitions: Sequence[str] = ()) -> Frame:
        return seen(path, partitions)["ok"] if path.suffix == ".csv" else LOOKED | {"file": path.name}

    def check(self, declared: DatasetSettings) -> Frame:
        """In this process; that the owner looked is noted as the real one does."""
        noted_look(declared)
        return {"tables": ipc.opened(counted(declared))["tables"]}

    def hold(self, declared: DatasetSettings) -> bool:
        if declared.name in self.datasets:
            raise SetupError("bad-declaration", "A dataset of that name is registered.")
        self.datasets[declared.name] = OpenDataset(declared.name)
        return True

    def withdraw(self, name: str) -> None:
        if name in self.databases:
            raise SetupError("bad-config", "It is declared in the configuration.")
        if self.datasets.pop(name, None) is None:
            raise AccessDenied("not-found", "There is no such dataset.")

    def close(self) -> None:
        self.near.jobs.close()
        self.access.close()
        for database in self.databases.values():
            database.close()
