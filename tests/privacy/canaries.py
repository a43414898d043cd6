"""A service over data full of canaries, and a door to it that keeps all it was told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

import sulq
from sulq.answers import wire
from sulq.service.clerk.registration import declare
from sulq.testing import neighbours
from tests.privacy.cases import people
from tests.service.service import Running, service

CANARY = "CANARY-7f3a91"
NUMBER = 918_273_645  # a number that is no bound or label
PRICE = 0.0001
COLUMNS = {
    "age": sulq.Int(0, 120), "income": sulq.Real(0, 100_000), "city": ["Haifa", "Lod", "Yafo"], "name": sulq.Text(),
}  # fmt: skip


def survey(path: Path) -> Path:
    """People, some with cells nobody declared, and a canary in each of these."""
    size = 200
    table = pa.table(
        {
            "person": [f"{CANARY}-{i}" for i in range(size)],
            "age": [NUMBER if i % 9 == 0 else i % 90 for i in range(size)],
            "income": [float(NUMBER) if i % 7 == 0 else 100.0 * i for i in range(size)],
            "city": [(CANARY, "Haifa", "Lod")[i % 3] for i in range(size)],
            "name": [f"{CANARY} {NUMBER}" for i in range(size)],
        }
    )
    pq.write_table(table, path)
    return path


def generated(path: Path, rows: list[dict]) -> Path:
    """Rows of the generated columns."""
    pq.write_table(neighbours.arrow(rows), path)
    return path


@dataclass
class Door:
    """An analyst's client; every byte it gets is kept."""

    client: httpx.Client
    heard: list[str] = field(default_factory=list)

    def post(self, path: str, body: object) -> httpx.Response:
        """One request; a text is sent as it is."""
        content = body if isinstance(body, str) else json.dumps(body)
        reply = self.client.post(path, content=content, headers={"content-type": "application/json"})
        self.heard.append(f"{reply.headers} {reply.text}")
        return reply

    def get(self, path: str) -> httpx.Response:
        """Likewise."""
        reply = self.client.get(path)
        self.heard.append(f"{reply.headers} {reply.text}")
        return reply

    def sql(self, text: str, dataset: str = "people", spend: float = PRICE) -> httpx.Response:
        """A query, by itself."""
        body = {"sql": text, "spend": {"epsilon": spend}, "fresh": True}
        return self.post(f"/v1/datasets/{dataset}/sql", body)

    def ask(self, question: object, dataset: str = "people") -> httpx.Response:
        """A structured question, or the text of one."""
        text = question if isinstance(question, str) else json.dumps(wire.to_json(question))
        spend = json.dumps(wire.to_json(sulq.Epsilon(PRICE)))
        return self.post(f"/v1/datasets/{dataset}/ask", f'{{"question": {text}, "spend": {spend}}}')

    def spent(self, dataset: str = "people") -> object:
        """What this one has spent."""
        return wire.from_json(self.get(f"/v1/datasets/{dataset}/budget").json()["spent"]).amount

    def pages(self, dataset: str = "people") -> list[httpx.Response]:
        """What the console shows, signed in."""
        token = self.client.headers["authorization"].removeprefix("Bearer ")
        with httpx.Client(base_url=self.client.base_url, timeout=60, follow_redirects=True) as visitor:
            origin = {"origin": str(self.client.base_url).rstrip("/")}
            found = [visitor.post("/sign-in", data={"token": token}, headers=origin)]
            found += [visitor.get(path.format(dataset)) for path in PAGES]
        self.heard += [reply.text for reply in found]
        return found


PAGES = ("/", "/datasets/{}", "/datasets/{}/ask", "/datasets/{}/history", "/datasets/{}/jobs")


@contextlib.contextmanager
def watched(folder: Path, bad: list[dict], **settings: object) -> Iterator[tuple[Running, Door]]:
    """A service with `people`, and generated rows `with` and `without` bad ones if there are any; an analyst's door."""
    budget = sulq.Epsilon(900)
    unit = sulq.Unit("pid", rows=max(len(bad), 1))
    base = people("HLY")
    columns = dict(neighbours.COLUMNS)
    path = survey(folder / "people.parquet")
    more = [declare("people", path, COLUMNS, table="survey", unit=sulq.Unit("person"), budget=budget)]
    if bad:
        for name, rows in (("with", base + bad), ("without", base)):
            file = generated(folder / f"{name}.parquet", rows)
            more.append(declare(name, file, columns, table="data", unit=unit, budget=budget))
    with service(web=1, more=tuple(more), rate=10**7, **settings) as running:
        for declared in more:
            running.ready(declared.name)
        told = running.ask(
            "owner", "add_principal",
            {"name": "eve", "role": "analyst", "datasets": [d.name for d in more], "days": 1}, dataset=None,
        )  # fmt: skip
        headers = {"Authorization": f"Bearer {told['token']}"}
        with httpx.Client(base_url=running.url, headers=headers, timeout=120) as client:
            yield running, Door(client)


def seen(texts: dict[str, str], more: tuple[str, ...] = ()) -> list[str]:
    """Where a canary shows."""
    words = (CANARY, str(NUMBER), *more)
    return [f"{word} in {where}" for where, text in texts.items() for word in words if word in text]
