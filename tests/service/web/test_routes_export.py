"""The export is the whole transcript, or visibly is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import sulq
from sulq.errors import CuratorError, QuestionError
from sulq.service.clerk import request
from sulq.service.ipc import Frame
from sulq.service.web.app import create_app
from sulq.service.web.limits import Limits
from sulq.service.web.routes import ledger
from tests.service.door import Door
from tests.service.office import Office, survey

COUNT = sulq.Sums((sulq.lit(1),))


def test_an_export_holds_every_line_of_a_long_ledger(tmp_path: Path) -> None:
    """More lines than one reply of the clerk's holds are all there, in order, once; the control: one reply is cut."""
    lines = request.PAGE_LINES + 7
    office = Office(tmp_path, survey=survey(sulq.Epsilon(1000)))
    with Door(office) as door:
        view = office.databases["survey"]._oracle.for_analyst("analyst", dataset="survey")
        for _ in range(lines):
            view.ask(COUNT, spend=sulq.Epsilon(1e-4))
        for role in ("owner", "auditor"):
            reply = door.get("/v1/datasets/survey/export", role)
            found = reply.json()
            assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
            assert reply.headers["cache-control"] == "no-store"
            seqs = [line["seq"] for line in found["lines"]]
            assert seqs == sorted(set(seqs))
            assert len(seqs) == found["report"]["debits"] == lines
        page = door.get("/v1/datasets/survey/transcript", "owner", params={"limit": request.PAGE_LINES}).json()
        assert len(page["lines"]) == request.PAGE_LINES < lines


class Clerk:
    """Answers export and transcript; messages of more than `most` lines do not fit, entries past `fails` fail."""

    def __init__(self, entries: int, most: int, fails: int = 10**9) -> None:
        self.entries, self.most, self.fails = entries, most, fails

    async def __call__(self, name: str, body: Mapping[str, object]) -> dict[str, object]:
        after, limit = body["after"], body["limit"]
        lines = [{"seq": seq} for seq in range(after + 1, self.entries + 6)][:limit]  # some came after the report
        if after >= self.fails:
            raise CuratorError("unreachable", "gone")
        if len(lines) > self.most:
            raise QuestionError("too-large", "too long")
        return {"lines": lines, "report": {"entries": self.entries}} if name == "export" else {"lines": lines}


def whole(clerk: Clerk) -> bytes:
    async def read() -> bytes:
        text = b""
        try:
            async for part in ledger.exported(clerk, await ledger.page(clerk, "export", 0)):
                text += part
        except CuratorError:
            pass
        return text

    return asyncio.run(read())


@pytest.mark.parametrize("entries", [0, 1, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("most", [1000, 30, 1])
def test_long_lines_come_in_shorter_parts_and_end_with_the_report(entries: int, most: int) -> None:
    """Whatever fits one message, every line up to the verified entry is there, and none after it."""
    found = json.loads(whole(Clerk(entries, most)))
    assert [line["seq"] for line in found["lines"]] == list(range(1, entries + 1))


def test_what_is_cut_off_is_no_json() -> None:
    """A clerk that fails on the way leaves a text that no reader takes for whole."""
    text = whole(Clerk(3000, 1000, fails=2000))
    assert text.count(b"seq") == 2000
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(text)
    json.loads(whole(Clerk(3000, 1000)))  # the control


@pytest.mark.parametrize(("cost", "waits"), [(0.05, True), (0.0, False)])
def test_a_long_export_waits_rather_than_breaking_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float, *, waits: bool
) -> None:
    """Each page counts once, and past what free calls may take the next one waits. Control: cheap pages wait never.

    Bar: 40 pages of 5 calls each are 200; 30 are there at once, and a second brings one: 175 seconds, or a few more.
    """
    pages, now, slept = 40, [0.0], []
    office = Office(tmp_path, survey=survey())

    def call(frame: Mapping[str, object]) -> Frame:
        if frame["call"] not in ("export", "transcript"):
            return office.call(frame)
        after = frame["body"]["after"]
        found = {"lines": [{"seq": seq} for seq in range(after + 1, after + ledger.PAGE_LINES + 1)]}
        return {"ok": found | {"report": {"entries": pages * ledger.PAGE_LINES}}, "seconds": cost}

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(ledger, "sleep", sleep)
    app = create_app(call, office.service, console=False)
    app.app.state.limits = Limits.of(60, clock=lambda: now[0])
    with Door(office, app=app) as door:
        reply = door.get("/v1/datasets/survey/export", "auditor")
        assert [line["seq"] for line in reply.json()["lines"]] == list(range(1, pages * ledger.PAGE_LINES + 1))
        assert 160 < sum(slept) < 200 if waits else slept == []
