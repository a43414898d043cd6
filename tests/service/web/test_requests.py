"""A request's token and body, before the clerk has seen either."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from sulq.service.clerk.tokens import hashed
from sulq.service.ipc import Frame
from sulq.service.web import limits
from sulq.service.web.app import create_app
from sulq.service.web.requests import Body, mistakes
from tests.service.door import Door
from tests.service.matrix import ASKED
from tests.service.office import Office, survey


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic {}", "Bearer {} {}", "Bearer  {}", "{}", "Bearer {}\x7f", "Bearer " + "a" * 201],
)
def test_only_a_bearer_token_is_a_token_T80(door: Door, header: str) -> None:
    """Other schemes, two tokens, no token and endless ones are refused without asking the clerk."""
    shown = header.replace("{}", door.office.tokens["owner"])
    reply = door.get("/v1/me", headers={"authorization": shown})
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized")
    assert door.office.seen == []


def test_a_token_counts_in_its_header_alone_T80(door: Door) -> None:
    """In a query or a cookie it opens nothing; in the header it does, whatever the case of the scheme."""
    token = door.office.tokens["owner"]
    assert door.get(f"/v1/me?token={token}&access_token={token}").status_code == 401
    assert door.get("/v1/me", headers={"cookie": f"token={token}; session={token}"}).status_code == 401
    assert door.get("/v1/me", headers={"authorization": f"bearer {token}"}).status_code == 200


def test_the_clerk_is_shown_the_caller_s_token_and_the_log_nothing_T80(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """Frames to the clerk hold the caller's own token and no other; the log no token, literal, or word of a path."""
    caplog.set_level("DEBUG")
    door.post(
        "/v1/datasets/survey/sql", {"sql": "SELECT COUNT(*) FROM survey WHERE age > 41", "spend": {"rho": 1}}, "owner"
    )
    door.get("/v1/datasets/private-word", "owner")
    assert len(door.office.seen) >= 3
    others = {who: token for who, token in door.office.tokens.items() if who != "owner"}
    assert all(json.loads(frame)["token"] == door.office.tokens["owner"] for frame in door.office.seen)
    assert not any(token in "\n".join(door.office.seen) for token in others.values())
    assert not any(shown in caplog.text for token in door.office.tokens.values() for shown in (token, hashed(token)))
    lines = [record for record in caplog.records if record.name == "sulq.service.web.responses"]
    assert [record.status for record in lines] == [200, 404], "the control: there is a line for each request"
    assert all("private-word" not in str(vars(record)) and "41" not in record.route for record in lines)


def test_a_body_is_not_read_for_a_stranger_T85(door: Door) -> None:
    """Whatever it says: a token the clerk does not know is refused as such, and counted."""
    door.office.tokens["unknown"] = "sulq_wrong"
    for content, media in ((b"{", "application/json"), (b"[" * 1000, "application/json"), (b"", "text/plain")):
        for path in ("/v1/datasets/survey/sql", "/v1/datasets/survey/ask", "/v1/analysts", "/v1/look"):
            headers = {"content-type": media}
            reply = door.request("POST", path, role="unknown", content=content, headers=headers)
            assert reply.status_code == 401
            reply = door.request("POST", path, role="owner", content=content, headers=headers)
            assert reply.status_code in (400, 415), "the control: of somebody known it is read"


class Small(Body):
    """Two fields."""

    number: int
    text: str = ""


def test_a_mistake_is_named_without_repeating_what_was_said() -> None:
    """Where a body does not fit is said; its own words stay with the sender."""
    with pytest.raises(ValidationError) as caught:
        Small.model_validate({"number": "SECRET", "other": "SECRET", "text": 3})
    told = mistakes(caught.value)
    assert "SECRET" not in told
    assert "number" in told
    assert "other" in told


DELTA = {"epsilon": 0.1, "delta": 1e-8}


@pytest.mark.parametrize("bounded", [True, False])
def test_a_ledger_that_hangs_holds_up_no_call_of_another_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, bounded: bool
) -> None:
    """Foreseen and asked with a delta while both slots are held by calls that hang; then both slots are back.

    Control: where a slot is waited for without end, nobody is answered.
    """
    if not bounded:
        monkeypatch.setattr(limits, "MAX_SLOT_SECONDS", 600.0)
    office, hang, struck = Office(tmp_path, survey=survey(), hang=survey()), threading.Event(), threading.Semaphore(0)
    for who in ("first", "second"):
        office.tokens[who] = office.access.add(who, "analyst", ["hang"])

    def call(frame: Mapping[str, object]) -> Frame:
        if frame["dataset"] == "hang":
            struck.release()
            hang.wait(300)
        return office.call(frame)

    app = create_app(call, office.service, console=False)

    async def tried() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:

            async def post(who: str, path: str, body: Mapping[str, object] = ASKED) -> int:
                headers = {"Authorization": f"Bearer {office.tokens[who]}"}
                return (await http.post(f"/v1/datasets/{path}", json=body, headers=headers)).status_code

            held = [asyncio.create_task(post(who, "hang/foresee")) for who in ("first", "second")]
            for _ in held:
                assert await asyncio.to_thread(struck.acquire, timeout=120)
            try:
                async with asyncio.timeout(120 if bounded else 3):
                    free = await post("analyst", "survey/foresee")
                    told = [free, await post("analyst", "survey/ask", ASKED | {"spend": DELTA})]
            except TimeoutError:
                told = []
            hang.set()
            return [*told, *await asyncio.gather(*held)]

    codes = asyncio.run(tried())
    slots = app.app.state.limits.computing._value
    office.close()
    assert codes == [200] * (4 if bounded else 2)
    assert slots == limits.MAX_FREE_CALLS
