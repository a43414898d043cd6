"""Every route by every role on every kind of object: the outcomes are written down here, and nowhere else (T79)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from fractions import Fraction

import httpx
import pytest

import sulq
from sulq.language.privacy import DELTA_SHARES
from sulq.service.clerk.tokens import hashed
from sulq.service.web import limits, requests
from sulq.service.web.limits import Limits
from sulq.service.web.routes import OPEN, routes
from tests.service.door import Door
from tests.service.matrix import ASKED, JOB, MATRIX, REGISTERED
from tests.service.office import Office, survey

ROLES = ("owner", "analyst", "auditor")
OF_A_DATASET = [key for key in MATRIX if "{name}" in key[1] and "datasets" in key[1]]


def asked(
    door: Door, method: str, path: str, role: str | None, *, dataset: str = "survey", maker: str | None = None
) -> httpx.Response:
    """One request of the matrix, to objects that the role (or `maker`) made."""
    row = MATRIX[method, path]
    made = maker or role
    if "{seq}" in path:
        path = path.replace("{seq}", str(receipt(door, made if made in ("owner", "analyst", "other") else "owner")))
    if "{key}" in path:
        path = path.replace("{key}", job(door, made) if made in ("owner", "analyst", "other") else "0" * 32)
    path = path.replace("{analyst}", "analyst")
    if (method, path) == ("DELETE", "/v1/datasets/{name}") and dataset == "survey":
        dataset = doomed(door)  # one declared in the configuration cannot be taken away
    path = path.replace("{name}/rotate", "spare/rotate")
    path = path.replace("{name}", "other" if "analysts" in path else dataset)
    headers = {"content-type": "application/json"} if row.body is not None else {}
    content = None if row.body is None else json.dumps(row.body)
    return door.request(method, path, role=role, content=content, headers=headers, params=row.query)


def doomed(door: Door) -> str:
    """A dataset registered over HTTP, to be taken away."""
    name = "doomed"
    if name not in door.office.datasets:
        assert door.post("/v1/datasets", {**REGISTERED, "name": name}, "owner").status_code == 201
    return name


def receipt(door: Door, role: str) -> int:
    told = door.post("/v1/datasets/survey/ask", ASKED, role).json()
    return told["answer"]["receipt"]["seq"]


def job(door: Door, role: str) -> str:
    return door.post("/v1/datasets/survey/jobs", JOB, role).json()["id"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One application for the whole matrix; what a row makes or ends, no other row looks at."""
    folder = tmp_path_factory.mktemp("office")
    (folder / "people.csv").write_text("age\n1\n")
    office = Office(folder, survey=survey(), hidden=survey())
    office.tokens["revoked"] = office.access.add("gone", "owner")
    office.access.revoke("gone")
    office.tokens["expired"] = office.access.add("late", "owner", days=1)
    office.tokens["unknown"] = "sulq_" + "a" * 43
    office.access.add("spare", "analyst", ["survey"])
    office.tokens["session"] = office.access.begin_session(
        hashed(office.tokens["owner"])
    )  # the console's alone to show
    office.tokens["hash"] = hashed(office.tokens["owner"])
    with Door(office) as opened:
        yield opened


def test_how_delta_is_divided_is_said_over_http(shared: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is read as it was written; one past the most, one that is no number, or one of no delta is refused."""
    held = []
    monkeypatch.setattr(shared.office, "hold", held.append, raising=False)
    body = {**REGISTERED, "name": "parts", "budget": {"kind": "EpsilonDelta", "epsilon": 1, "delta": 1e-6}}
    for name in DELTA_SHARES:
        held.clear()
        for part in (0.3, None, 0):
            assert shared.post("/v1/datasets", {**body, name: part}, "owner").status_code == 201
        assert [getattr(declared, name) for declared in held] == [Fraction(3, 10), None, Fraction(0)]
        for odd in ({name: 0.95}, {name: "a"}, {name: 0.1, "budget": REGISTERED["budget"]}):
            assert shared.post("/v1/datasets", {**body, **odd}, "owner").status_code in (400, 422)
        assert len(held) == 3


def test_a_long_list_of_categories_is_declared_over_http_T85(shared: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than other bodies, from somebody who is known. Control: nobody else's is read, and it has an end."""
    held = []
    monkeypatch.setattr(shared.office, "hold", held.append, raising=False)
    values = [f"code {i:07}" for i in range(30_000)]
    body = {**REGISTERED, "name": "long", "columns": {"age": {"kind": "Category", "values": values}}}
    assert len(json.dumps(body)) > limits.MAX_BODY_BYTES
    assert shared.post("/v1/datasets", body, "owner").status_code == 201
    assert held[0].tables[0].facts.schema.columns == (("age", sulq.Category(values)),)
    assert shared.post("/v1/datasets", body, "analyst").status_code == 403
    assert shared.post("/v1/datasets", body, "unknown").status_code == 401
    monkeypatch.setattr(requests, "MAX_QUESTION_BYTES", limits.MAX_BODY_BYTES)
    assert shared.post("/v1/datasets", body, "owner").status_code == 413
    assert len(held) == 1


def test_every_route_has_its_row_T79() -> None:
    """A new route fails this until its outcomes are written down; so does a row whose route is gone."""
    found = {(method, route.path) for route in routes() for method in route.methods or ()}
    assert found == set(MATRIX)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), MATRIX)
def test_each_role_gets_what_is_written_T79(shared: Door, method: str, path: str, role: str) -> None:
    """The outcome of each route for each role, on what is its own."""
    reply = asked(shared, method, path, role)
    assert reply.status_code == getattr(MATRIX[method, path], role), reply.text
    if reply.status_code == 403:
        assert reply.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize(("method", "path"), [key for key in MATRIX if key[1] not in OPEN])
def test_nobody_comes_in_without_a_good_token_T79(
    shared: Door, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token, a made-up one, a hash or a session in place of one, a revoked and an expired one open nothing."""
    shared.app.app.state.limits = Limits.of(10**6)  # wrong tokens are counted; here they must be looked at
    told = {}
    for role in (None, "unknown", "hash", "session", "revoked"):
        reply = asked(shared, method, path, role)
        assert reply.status_code == 401, (role, reply.text)
        assert reply.json()["error"]["code"] == "unauthorized"
        assert reply.headers["www-authenticate"].startswith("Bearer")
        told[role] = reply.text
    assert told["unknown"] == told["hash"] == told["revoked"], "a token that ended is like one that never was"
    monkeypatch.setattr(shared.office.access, "_clock", lambda: time.time() + 86400)
    reply = asked(shared, method, path, "expired")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "token-expired")


@pytest.mark.parametrize("role", ["analyst", "auditor"])
@pytest.mark.parametrize(("method", "path"), OF_A_DATASET)
def test_a_dataset_of_others_is_not_there_T79(shared: Door, method: str, path: str, role: str) -> None:
    """Forbidden and missing datasets answer byte for byte alike, and the hidden one's ledger is not touched."""
    before = len(shared.office.databases["hidden"].transcript())
    replies = [asked(shared, method, path, role, dataset=name) for name in ("hidden", "nowhere")]
    may_come = getattr(MATRIX[method, path], role) < 300
    assert {reply.status_code for reply in replies} <= ({404} if may_come else {403, 404})
    assert (replies[0].status_code, replies[0].content) == (replies[1].status_code, replies[1].content)
    assert len(shared.office.databases["hidden"].transcript()) == before
    control = asked(shared, method, path, "owner", dataset="hidden")
    declared = control.status_code == 400 and control.json()["error"]["code"] == "bad-config"
    assert declared or control.status_code in (200, 202, 404), "the control: it is there for its owner"
    assert control.status_code != 404 or "{seq}" in path


def test_another_analysts_things_are_not_there_T79(door: Door) -> None:
    """Another's receipt, lines of the transcript and jobs are not found; owner and auditor read the ledger's."""
    path = "/v1/datasets/{name}/receipts/{seq}"
    assert asked(door, "GET", path, "other", maker="analyst").status_code == 404
    for role in ("analyst", "owner", "auditor"):
        assert asked(door, "GET", path, role, maker="analyst").status_code == 200
    lines = door.get("/v1/datasets/survey/transcript", "other").json()["lines"]
    assert lines == []
    assert len(door.get("/v1/datasets/survey/transcript", "analyst").json()["lines"]) > 0
    key = job(door, "analyst")
    for role in ("other", "owner", "auditor"):
        for method in ("GET", "DELETE"):
            assert door.request(method, f"/v1/jobs/{key}", role=role).status_code == 404
    assert door.get("/v1/jobs", "other").json() == {"jobs": []}
    assert door.get(f"/v1/jobs/{key}", "analyst").status_code == 200


def test_a_revocation_counts_at_the_next_request_T80(door: Door) -> None:
    """An owner ends a token over HTTP, and the very next request with it is refused."""
    assert door.get("/v1/me", "other").status_code == 200
    assert door.request("DELETE", "/v1/analysts/other", role="owner").status_code == 204
    assert door.get("/v1/me", "other").status_code == 401
    assert door.request("DELETE", "/v1/analysts/other", role="owner").status_code == 404


def test_all_addresses_below_v1_ask_for_a_token_T79(shared: Door) -> None:
    """Every route and method is in the matrix, and the document is the one address beside it; both ask for a token."""
    listed = {(m, r.path) for r in shared.app.app.router.routes for m in getattr(r, "methods", None) or ()}
    beside = {key for key in listed - set(MATRIX) if key[1].startswith("/v1")}
    assert beside == {("GET", "/v1/openapi.json")}
    for role, status in ((None, 401), ("unknown", 401), ("revoked", 401), *((role, 200) for role in ROLES)):
        assert shared.get("/v1/openapi.json", role).status_code == status


def test_a_token_is_rotated_over_http_T80(door: Door) -> None:
    """By an owner anybody's, by others their own, which then lives no longer; the old one is good for the overlap."""
    body = {"overlap": 3600}
    assert door.post("/v1/analysts/other/rotate", body, "analyst").status_code == 403
    assert door.post("/v1/analysts/nobody/rotate", body, "owner").status_code == 404
    assert door.post("/v1/analysts/analyst/rotate", {**body, "days": 400}, "analyst").status_code == 403
    own = door.post("/v1/analysts/ANALYST/rotate", body, "analyst")
    assert own.status_code == 201
    door.office.tokens["newer"] = own.json()["token"]
    old, new = (door.get("/v1/me", role).json() for role in ("analyst", "newer"))
    assert (old["name"], new["name"]) == ("analyst", "analyst")
    assert old["expires"] < new["expires"] <= time.time() + 90 * 86400
    again = door.post("/v1/analysts/analyst/rotate", body, "analyst")
    assert (again.status_code, again.json()["error"]["code"]) == (403, "forbidden"), "the older token makes no other"
    ended = door.post("/v1/analysts/analyst/rotate", {"overlap": 0, "days": 3}, "owner")
    door.office.tokens["newest"] = ended.json()["token"]
    assert [door.get("/v1/me", role).status_code for role in ("analyst", "newer", "newest")] == [401, 401, 200]
    for odd in ({"overlap": -1}, {"overlap": 10**9}, {"overlap": "1h"}, {"days": 0}):
        assert door.post("/v1/analysts/other/rotate", odd, "owner").status_code == 400


def test_datasets_are_granted_by_name_T79(door: Door) -> None:
    """None named is none, and all are said as "all"; a list that is none, or names what is not there, is refused."""
    for grant, seen in (
        ({}, []), ({"datasets": None}, []), ({"datasets": []}, []),
        ({"datasets": ["survey"]}, ["survey"]), ({"datasets": "all"}, ["hidden", "survey"]),
    ):  # fmt: skip
        name = f"grantee-{len(door.office.tokens)}"
        body = {"name": name, "role": "auditor", **grant}
        door.office.tokens[name] = door.post("/v1/analysts", body, "owner").json()["token"]
        assert [item["name"] for item in door.get("/v1/datasets", name).json()["datasets"]] == seen, grant
    for odd in ("every", ["nowhere"], [1], {"survey": True}):
        assert door.post("/v1/analysts", {"name": "odd", "datasets": odd}, "owner").status_code == 400
    owner = {"name": "second", "role": "owner"}
    assert door.post("/v1/analysts", {**owner, "datasets": ["survey"]}, "owner").status_code == 400
    assert door.post("/v1/analysts", owner, "owner").status_code == 201


def test_the_last_owner_and_a_revoked_name_T80(door: Door) -> None:
    """Over HTTP too: the one owner cannot go, a second one lets it, and no name comes back, in no case of letters."""
    refused = door.request("DELETE", "/v1/analysts/owner", role="owner")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "last-owner")
    second = door.post("/v1/analysts", {"name": "second", "role": "owner"}, "owner").json()["token"]
    door.office.tokens["second"] = second
    assert door.request("DELETE", "/v1/analysts/owner", role="second").status_code == 204
    for name in ("owner", "OWNER"):
        again = door.post("/v1/analysts", {"name": name}, "second")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "name-revoked")
        assert door.post(f"/v1/analysts/{name}/rotate", {}, "second").status_code == 404


def test_nobody_comes_in_whom_the_log_cannot_name(door: Door) -> None:
    """Acts get 503 and a word of what to do, without a path; asks go on; once it can be written acts do too."""
    assert door.post("/v1/analysts", {"name": "before"}, "owner").status_code == 201
    path = door.office.access.log.path
    path.chmod(0o644)  # others could read it: not written to
    refused = door.post("/v1/analysts", {"name": "dana"}, "owner")
    told = refused.json()["error"]
    assert (refused.status_code, told["code"]) == (503, "access-failed")
    assert str(path) not in refused.text
    assert "log" in told["message"]
    assert door.request("DELETE", "/v1/analysts/other", role="owner").status_code == 503
    assert door.get("/v1/me", "other").status_code == 200
    assert door.post("/v1/datasets/survey/ask", ASKED, "analyst").status_code == 200
    path.chmod(0o600)
    assert door.post("/v1/analysts", {"name": "dana"}, "owner").status_code == 201
    entries = door.get("/v1/access", "owner").json()["entries"]
    assert [entry["outcome"] for entry in entries if entry["what"] == "ask"] == ["ok"]


def test_each_request_has_an_id_of_ours(door: Door) -> None:
    """Drawn for each, returned, and passed to the clerk with the address; one that a caller names is not taken."""
    replies = [door.get("/v1/me", "analyst", headers={"X-Request-Id": "mine"}) for _ in range(3)]
    ids = [reply.headers["x-request-id"] for reply in replies]
    assert len(set(ids)) == 3
    assert all(len(found) == 16 and int(found, 16) >= 0 for found in ids)
    frames = [json.loads(frame) for frame in door.office.seen[-3:]]
    assert [(frame["request"], frame["address"]) for frame in frames] == [(found, "127.0.0.1") for found in ids]
    asked = door.post("/v1/datasets/survey/ask", ASKED, "analyst")
    assert json.loads(door.office.seen[-1])["request"] == asked.headers["x-request-id"]
    assert door.get("/v1/nowhere").headers["x-request-id"] not in ids


def test_a_new_token_is_shown_once_and_works_T80(door: Door) -> None:
    """A token made over HTTP opens what it was made for; the list of analysts shows neither it nor its hash."""
    body = {"name": "carol", "role": "analyst", "datasets": ["survey"], "days": 3}
    token = door.post("/v1/analysts", body, "owner").json()["token"]
    door.office.tokens["carol"] = token
    assert door.get("/v1/me", "carol").json()["name"] == "carol"
    assert [item["name"] for item in door.get("/v1/datasets", "carol").json()["datasets"]] == ["survey"]
    told = door.get("/v1/analysts", "owner").text
    assert token not in told
    assert hashed(token) not in told
    assert '"carol"' in told, "the control: the list names who was let in"
    again = door.post("/v1/analysts", body, "owner")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "name-taken")
