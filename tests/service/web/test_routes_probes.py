"""The probes: what they say of datasets, to whom, and that the examples of the guide work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.errors import SetupError
from sulq.service.ipc import away
from sulq.service.web.routes import OPEN
from tests.service.door import Door
from tests.service.office import Office, survey

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "operate" / "serve.md"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with Door(Office(tmp_path, survey=survey(), hidden=survey())) as found:
        yield found


def said(door: Door, who: str | None = None) -> tuple[int, dict]:
    """What /v1/ready says, and to whom; while it is not ready, when to come again."""
    reply = door.get("/v1/ready", who)
    assert ("retry-after" in reply.headers) == (reply.status_code == 503)
    return reply.status_code, reply.json()


def test_ready_names_a_problem_to_owners_alone_T33(door: Door) -> None:
    """Others hear the state and no name, message or code. Control: without a problem everybody hears `ok`."""
    for who in (None, "owner", "analyst", "auditor"):
        assert said(door, who)[0] == 200
        assert said(door, who)[1]["status"] == "ok"
    assert said(door, "owner")[1]["problems"] == []
    door.office.datasets["hidden"].fault = SetupError("ledger-rolled-back", "It is old.", "Restore it.")
    for who in (None, "analyst", "auditor"):
        assert said(door, who) == (503, {"status": "problem"})
    told = {"dataset": "hidden", "code": "ledger-rolled-back", "message": "It is old.", "remedy": "Restore it."}
    assert said(door, "owner") == (503, {"status": "problem", "problems": [told]})
    assert door.get("/v1/health", None).json()["status"] == "problem"
    assert door.get("/v1/health", None).status_code == 200
    assert door.get("/v1/live", None).status_code == 200
    assert door.get("/v1/datasets/survey/budget", "analyst").status_code == 200, "the other dataset goes on"


def test_a_token_that_is_none_is_refused_T79(door: Door) -> None:
    """Whoever shows a token must be somebody. Control: nobody need show one."""
    for who in ("Bearer sulq_nobody", "Basic x", ""):
        reply = door.request("GET", "/v1/ready", headers={"authorization": who})
        assert reply.status_code == 401
    assert said(door)[0] == 200


def test_without_a_clerk_it_is_alive_and_not_ready(door: Door) -> None:
    """The web process answers; the clerk does not, to anybody."""

    def call(_frame: object) -> dict[str, object]:
        raise away()

    door.app.app.state.call = call
    assert said(door) == (503, {"status": "away"})
    assert said(door, "owner")[0] == 503
    assert (door.get("/v1/health", None).status_code, door.get("/v1/live", None).status_code) == (503, 200)


def test_the_guides_probes_reach_the_server(door: Door) -> None:
    """Addresses and `Host` of the examples are ones that it answers. Control: an address of the machine is none."""
    text = GUIDE.read_text(encoding="utf-8").partition("## Probes")[2].partition("\n## ")[0]
    probes = re.findall(r"path: (\S+), port: 8765, httpHeaders: \[\{name: Host, value: (\w+)\}\]", text)
    assert {path for path, _ in probes} == {"/v1/live", "/v1/ready"}
    for path, host in probes:
        assert path in OPEN
        assert door.request("GET", path, headers={"host": host}).status_code == 200
        assert door.request("GET", path, headers={"host": "10.1.2.3"}).status_code == 400
    assert set(re.findall(r"localhost:8765(/v1/\w+)", text)) <= OPEN
