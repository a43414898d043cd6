"""The HTTP API: strict bodies, constant failures, headers on everything, a document that is true (T81, T84-T88)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.errors import CODES, BudgetExceeded, CuratorError, QuestionError, SetupError
from sulq.service.ipc import Frame, refusal
from sulq.service.jobs.calls import offers
from sulq.service.settings import Service
from sulq.service.web.app import create_app
from sulq.service.web.limits import MAX_BODY_BYTES, MAX_QUESTION_BYTES
from sulq.service.web.responses import FAILED, HEADERS
from sulq.service.web.routes import OPEN, document
from tests.service.door import Door
from tests.service.office import Office, survey

SQL = "/v1/datasets/survey/sql"
ASK = "/v1/datasets/survey/ask"
COUNT = {"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}}
JSON = {"content-type": "application/json"}


def answering(reply: Frame | Exception, tmp_path: Path) -> Door:
    """An application whose clerk says one thing."""
    office = Office(tmp_path, survey=survey())
    door = Door(office)

    def call(_frame: Mapping[str, object]) -> Frame:
        if isinstance(reply, Exception):
            raise reply
        return reply

    door.app.app.state.call = call
    return door


@pytest.mark.parametrize(
    "text",
    [
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1, "epsilon": 0.2}}',
        b'{"sql": "a", "sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": NaN}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": Infinity}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 1e999}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": -1}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": true}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": "0.1"}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"kind": "Unit"}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"kind": "Budget", "epsilon": 1}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spent": {"epsilon": 0.1}}',
        b'{"sql": "SELECT COUNT(*) FROM survey"}',
        b'{"sql": 7, "spend": {"epsilon": 0.1}}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}, "beta": 2}',
        b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}, "fresh": "yes"}',
        b'{"sql": "SELECT COUNT(*) FROM survey; DROP TABLE survey", "spend": {"epsilon": 0.1}}',
        b'{"sql": "SELECT * FROM survey", "spend": {"epsilon": 0.1}}',
        b"[]",
        b"",
        b"null",
        b"\xff\xfe{\x00}\x00",
        b'{"sql": "' + b"\xff" + b'"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
)
def test_a_body_has_one_meaning_or_none_T84(door: Door, text: bytes) -> None:
    """Duplicate keys, numbers that are none, wrong kinds, unknown fields and bottomless nesting: 400, nothing spent."""
    reply = door.request("POST", SQL, role="analyst", content=text, headers=JSON)
    assert reply.status_code == 400, reply.text
    told = reply.json()["error"]
    assert told["code"] in CODES
    assert told["remedy"]
    assert door.office.databases["survey"].transcript() == []


def test_the_controls_for_strict_bodies(door: Door) -> None:
    """What the refused bodies vary is answered, in the short forms of a spend and in the canonical one."""
    for spend in (
        {"epsilon": 0.1},
        {"epsilon": 0.1, "delta": 1e-9},
        {"rho": 0.01},
        {"kind": "Epsilon", "epsilon": {"kind": "fraction", "value": "1/10"}},
    ):
        reply = door.post(SQL, COUNT | {"spend": spend, "fresh": True}, "analyst")
        assert reply.status_code == 200, reply.text
    assert len(door.office.databases["survey"].transcript()) == 4


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
def test_only_json_is_read_T81(door: Door, media: str) -> None:
    """A form or plain text, which a page of another site could send without asking, is refused unread."""
    reply = door.request("POST", SQL, role="analyst", content=json.dumps(COUNT), headers={"content-type": media})
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "bad-media")
    assert door.office.databases["survey"].transcript() == []


def test_bodies_are_bounded_T85(door: Door) -> None:
    """256 KiB for all, 16 MiB for a structured question of somebody known, and no more, said or unsaid."""
    long = json.dumps(COUNT | {"sql": "SELECT COUNT(*) FROM survey --" + "x" * MAX_BODY_BYTES}).encode()
    for content in (long, iter_of(long)):
        reply = door.request("POST", SQL, role="analyst", content=content, headers=JSON)
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body-too-large")
    big = json.dumps(
        {"question": {"kind": "Sums", "values": [{"kind": "Lit", "value": 1}], "x": "y" * MAX_BODY_BYTES}}
    ).encode()
    reply = door.request("POST", ASK, role="analyst", content=big, headers=JSON)
    assert reply.status_code == 400, "it was read, and refused for what it says"
    assert door.request("POST", ASK, content=big, headers=JSON).status_code == 401
    door.office.tokens["unknown"] = "sulq_wrong"
    reply = door.request("POST", ASK, role="unknown", content=big, headers=JSON)
    assert reply.status_code == 401, "a large body is not read for somebody unknown"
    huge = {**JSON, "content-length": str(MAX_QUESTION_BYTES + 1)}
    reply = door.request("POST", ASK, role="analyst", content=big, headers=huge)
    assert reply.status_code == 413


async def iter_of(content: bytes):
    for start in range(0, len(content), 2**16):
        yield content[start : start + 2**16]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (QuestionError("unknown-column", "No column 'x'."), 400),
        (QuestionError("key-reused", "Used."), 409),
        (BudgetExceeded("budget-exceeded", "Too much."), 402),
        (SetupError("not-ready", "Opening."), 503),
        (SetupError("source-changed", "CANARY in /secret/path"), 503),
        (CuratorError("engine-failed", "CANARY 4711"), 500),
        (CuratorError("noise-failed", "CANARY 4711"), 500),
        (CuratorError("unreachable", "CANARY 4711"), 503),
    ],
)
def test_errors_have_their_status_and_the_curators_own_say_nothing_T31(
    tmp_path: Path, error: Exception, status: int
) -> None:
    """Each family has its status; what failed inside is a constant text, whatever it was."""
    with answering(refusal(error), tmp_path) as door:
        reply = door.post(ASK, {"question": {"kind": "Sums"}}, "analyst")
        assert reply.status_code == status
        told = reply.json()["error"]
        assert (told["kind"], told["code"]) == (type(error).__name__, error.code)
        assert "CANARY" not in reply.text
        if isinstance(error, CuratorError):
            assert (told["message"], told["remedy"]) == (FAILED, CODES[error.code])
        if isinstance(error, (QuestionError, BudgetExceeded)):
            assert told["message"] == error.message, "a refusal says what was asked and why not"


@pytest.mark.parametrize("cause", [RuntimeError("CANARY 4711"), OSError("CANARY"), KeyError("CANARY")])
def test_what_nobody_foresaw_is_a_constant_T87(
    tmp_path: Path, cause: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected exception gives one constant response and no traceback; the log has its type alone."""
    with answering(cause, tmp_path) as door:
        reply = door.post(ASK, {"question": {"kind": "Sums"}}, "analyst")
    assert reply.status_code == 500
    assert reply.json()["error"]["code"] == "engine-failed"
    assert "CANARY" not in reply.text
    assert "Traceback" not in reply.text
    assert "CANARY" not in caplog.text
    assert any(getattr(record, "error", "") == type(cause).__name__ for record in caplog.records)


def test_every_response_carries_the_constant_headers(door: Door) -> None:
    """Answers, refusals, unknown addresses and health alike; no compression, no server name, no CORS."""
    replies = [
        door.get("/v1/health"),
        door.get("/v1/me"),
        door.get("/v1/me", "owner", headers={"origin": "https://evil.example", "accept-encoding": "gzip, br"}),
        door.get("/nowhere", "owner"),
        door.get("/v1/datasets/survey/budget/", "owner"),
        door.post(SQL, COUNT, "analyst"),
        door.request("DELETE", "/v1/me", role="owner"),
        door.request(
            "OPTIONS", SQL, headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
        ),
    ]
    for reply in replies:
        for name, value in HEADERS.items():
            assert reply.headers[name] == value
        assert "server" not in reply.headers
        assert "content-encoding" not in reply.headers
        assert "location" not in reply.headers
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_methods_that_are_not_there_are_named(door: Door) -> None:
    """405 and OPTIONS name what an address takes; HEAD is GET without its body."""
    wrong = door.request("PATCH", "/v1/analysts", role="owner")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    options = door.request("OPTIONS", "/v1/jobs/abc")
    assert (options.status_code, options.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS")
    head, whole = door.request("HEAD", "/v1/me", role="owner"), door.get("/v1/me", "owner")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))
    assert door.request("HEAD", "/v1/me").status_code == 401


def test_the_server_answers_to_its_own_names_only_T86(tmp_path: Path) -> None:
    """A foreign Host header is refused on loopback; the owner's further names are taken, on 0.0.0.0 no others."""
    with Door(Office(tmp_path, survey=survey())) as door:
        for host in ("localhost", "localhost:8765", "127.0.0.1", "127.0.0.1:1", "[::1]:8765", "LOCALHOST"):
            assert door.get("/v1/health", headers={"host": host}).status_code == 200
        for host in ("evil.example", "evil.example:8765", "localhost.evil.example", "", "127.0.0.1.evil.example"):
            assert door.get("/v1/health", headers={"host": host}).status_code == 400
        call = door.office.call
        named = Door(
            door.office,
            app=create_app(call, Service(tmp_path, host="10.0.0.1", hosts=("Curator.example",))),
            beside=door,
        )
        for host, status in (("curator.example", 200), ("10.0.0.1:80", 200), ("evil.example", 400)):
            assert named.get("/v1/health", headers={"host": host}).status_code == status
        everywhere = Service(tmp_path, host="0.0.0.0", hosts=("a.example",), public_url="https://b.example:8443")
        public = Door(door.office, app=create_app(call, everywhere), beside=door)
        for host, status in (("a.example", 200), ("b.example:8443", 200), ("localhost", 200), ("c.example", 400)):
            assert public.get("/v1/health", headers={"host": host}).status_code == status


def test_tls_says_so_T86(tmp_path: Path) -> None:
    """With a certificate every response tells browsers to stay with TLS; without one it would be a lie."""
    with Door(Office(tmp_path, survey=survey())) as door:
        assert "strict-transport-security" not in door.get("/v1/health").headers
        for service in (
            Service(tmp_path, tls_cert=tmp_path / "cert", tls_key=tmp_path / "key"),
            Service(tmp_path, public_url="https://localhost"),
        ):
            secure = create_app(door.office.call, service)
            assert "strict-transport-security" in Door(door.office, app=secure, beside=door).get("/v1/health").headers


def test_the_document_is_for_those_with_a_token_and_says_all(door: Door) -> None:
    """Every route has a summary, a reply and its refusals; 422 is none of them; bodies forbid what they do not name."""
    assert door.get("/v1/openapi.json").status_code == 401
    told = door.get("/v1/openapi.json", "auditor").json()
    assert told == document(door.app.app, offers())
    assert told["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], path
            assert "422" not in operation["responses"]
            assert ("security" in operation) == (path not in OPEN)
            body = operation.get("requestBody")
            assert (body is not None) == (method in ("post", "put") and not path.endswith(("verify", "sessions")))
            if body is not None:
                assert body["content"]["application/json"]["schema"]["additionalProperties"] is False
    assert "ValidationError" not in json.dumps(told)
    assert "$defs" not in json.dumps(told), "what a body is made of stands where it is"


def test_several_tables_are_registered_in_one_body(door: Door, tmp_path: Path) -> None:
    """Each with its file and columns; a table and tables at once, none at all, or a field too many is refused."""
    (tmp_path / "people.csv").write_text("pid,age")
    (tmp_path / "codes.csv").write_text("code")
    age = wire.to_json(sulq.Int(0, 120))
    people = {"file": "people.csv", "columns": {"age": age}}
    codes = {"file": "codes.csv", "columns": {"code": age}, "key": "code", "public": True}
    body = {
        "name": "clinic", "tables": {"people": people, "codes": codes}, "budget": wire.to_json(sulq.Epsilon(1)),
        "unit": wire.to_json(sulq.Unit("pid")),
    }  # fmt: skip
    for wrong in (
        {"file": "people.csv"}, {"columns": people["columns"]}, {"tables": {}}, {"tables": {"people": {"file": "x"}}},
        {"tables": {"people": people | {"more": 1}}}, {"tables": {"codes": codes}}, {"tables": None},
    ):  # fmt: skip
        reply = door.post("/v1/datasets", body | wrong, "owner")
        assert (reply.status_code, reply.json()["error"]["kind"] in {"QuestionError", "SetupError"}) == (400, True)
    reply = door.post("/v1/datasets", body, "owner")
    assert (reply.status_code, reply.json()) == (201, {"name": "clinic", "ready": True})


def test_there_are_no_pages_that_explain_the_api_to_strangers(door: Door) -> None:
    """FastAPI's own pages and document are off (T87)."""
    for path in ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        assert door.get(path, "owner").status_code == 404


def test_the_application_tells_no_tracer(door: Door) -> None:
    """FastAPI's own telemetry, which would hand bodies to a tracer, is off whatever the process has installed."""
    assert not any(door.app.app._telemetry[name] for name in ("tracing", "metrics", "logs", "auto_configure"))
