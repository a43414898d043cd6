"""Traces: a span for a request, its calls of the clerk and the workers' part; no word of a request in any."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, QuestionError, SulqError
from sulq.service.ipc import away
from sulq.service.sandbox import launcher
from sulq.service.web.app import create_app
from sulq.service.web.clerk_pool import timed_reply
from sulq.service.web.traces import MAX_SPANS, ClerkSpan, RequestSpan, Traces, clerk_call, traces_to
from tests.service.door import Door
from tests.service.office import Office, survey
from tests.service.service import service

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ASK = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": {"epsilon": 1}}
CANARY = "CANARY-55e0"
SQL = "/v1/datasets/survey/sql"
SECONDS = 120.0  # what does come may take this long


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def door(tmp_path: Path, exporter: InMemorySpanExporter) -> Iterator[Door]:
    office = Office(tmp_path, survey=survey())
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(office.call, office.service, traces=Traces(provider))
    with Door(office, app=app) as found:
        yield found


def whole(spans: tuple[ReadableSpan, ...]) -> list[ReadableSpan]:
    return [span for span in spans if span.parent is None]


def test_a_request_and_its_calls_of_the_clerk_are_spans(door: Door, exporter: InMemorySpanExporter) -> None:
    """The route by its pattern, the status; below it each call with its dataset and code, within its request's time."""
    assert door.post("/v1/datasets/survey/ask", ASK, "analyst").status_code == 200
    spans = exporter.get_finished_spans()
    (request,) = whole(spans)
    assert request.name == "POST /v1/datasets/{name}/ask"
    told = dict(request.attributes)
    assert len(told.pop("sulq.request")) == 16
    assert told == {
        "http.request.method": "POST", "http.route": "/v1/datasets/{name}/ask", "http.response.status_code": 200,
    }  # fmt: skip
    calls = [span for span in spans if span.parent is not None and span.parent.span_id == request.context.span_id]
    assert [(span.name, span.attributes["sulq.code"]) for span in calls] == [
        ("clerk whoami", "ok"),
        ("clerk ask", "ok"),
    ]
    assert calls[1].attributes["sulq.dataset"] == "survey"
    assert all(request.start_time <= span.start_time <= span.end_time <= request.end_time for span in calls)


def test_no_word_of_a_request_or_of_an_answer_is_in_a_span_T31(door: Door, exporter: InMemorySpanExporter) -> None:
    """Paths, literals, tokens, methods, headers, made-up datasets, results: none. Control: the clerk was sent them."""
    asked = {"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 1}}
    answer = door.post(SQL, asked, "analyst").json()
    door.post(SQL, {**asked, "sql": f"SELECT COUNT(*) FROM survey WHERE city = '{CANARY}'"}, "analyst")
    door.post(f"/v1/datasets/{CANARY}/ask", ASK, "analyst")
    door.post(f"/v1/datasets/{CANARY}/sql", asked, "analyst")
    door.get(f"/v1/datasets/{CANARY}", "owner")
    door.get(f"/{CANARY}?{CANARY}", headers={"Traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01", "X": CANARY})
    door.request(CANARY.replace("-", ""), SQL, role="analyst")
    spans = exporter.get_finished_spans()
    told = "".join(span.to_json() for span in spans)
    assert "CANARY" not in told
    assert "ab" * 16 not in told
    assert not any(token in told for token in door.office.tokens.values())
    assert any(CANARY in frame for frame in door.office.seen)
    value = answer["rows"][0][0] if "rows" in answer else None
    attributes = [value for span in spans for value in span.attributes.values()]
    assert all(isinstance(each, (str, int)) for each in attributes)
    assert value not in [each for each in attributes if not isinstance(each, str) and each not in range(200, 600)]
    assert {span.attributes.get("sulq.code") for span in whole(spans)} >= {"unknown-category", "not-found"}
    assert len(whole(spans)) == 7


def test_without_a_provider_nothing_is_traced_and_no_times_are_asked_for(tmp_path: Path) -> None:
    """As it is by default: the frames to the clerk say nothing of times."""
    with Door(Office(tmp_path, survey=survey())) as door:
        assert door.post("/v1/datasets/survey/ask", ASK, "analyst").status_code == 200
        assert not any("times" in json.loads(frame) for frame in door.office.seen)
    assert traces_to(None)._tracer is None
    with traces_to(None).request() as span, clerk_call("ask", "survey") as call:
        assert (span, call) == (None, None)


def test_a_request_has_so_many_spans_and_no_more() -> None:
    """A plan may call the clerk for each of its queries, a loop that never ends fills no memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = Traces(provider)
    with traces.request() as span:
        for _ in range(MAX_SPANS + 10):
            with clerk_call("foresee", "survey"):
                pass
        traces.tell(span, method="POST", route="/v1/plan", status=503, code="not-ready", known="0" * 16)
    spans = exporter.get_finished_spans()
    assert len(spans) == MAX_SPANS + 1
    assert not whole(spans)[0].status.is_ok


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (away(), False),
        (CuratorError("unreachable", "It stopped."), False),
        (QuestionError("too-large", "It was not sent."), False),
        (AccessDenied("not-found", "There is none."), False),
        (QuestionError("unknown-column", "No such column."), True),
        (BudgetExceeded("budget-exceeded", "Too much."), True),
    ],
)
def test_a_dataset_is_named_where_the_clerk_knew_it_alone_T31(error: SulqError, *, named: bool) -> None:
    """Not while it is away: the name is whatever a caller wrote. Control: a refusal of whom it let in names it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = Traces(provider)
    with traces.request() as span:
        with pytest.raises(SulqError), clerk_call("ask", CANARY):
            raise error
        traces.tell(span, method="POST", route="/a", status=503, code=error.code, known="0" * 16)
    assert (CANARY in "".join(each.to_json() for each in exporter.get_finished_spans())) == named


def test_the_workers_part_is_within_the_clerks() -> None:
    """A time that does not fit, by clocks that differ, is cut to the call's."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    now = time.time_ns()
    calls = [ClerkSpan("ask", now, "survey", now + 10**9, "ok", worked) for worked in (0.25, 5.0, 0.0)]
    Traces(provider).tell(RequestSpan(now, calls), method="POST", route="/a", status=200, code=None, known="")
    parts = [span for span in exporter.get_finished_spans() if span.name == "workers"]
    assert [(span.end_time - span.start_time) / 10**9 for span in parts] == [0.25, 1.0]
    assert all(dict(span.attributes) == {"sulq.dataset": "survey"} for span in parts)


def test_times_are_cut_off_a_reply_and_nothing_else_is() -> None:
    """The last field alone; a text that looks like it, or a field of that name within, stays."""
    inner = json.dumps({"ok": {"text": ',"took":1.5}', "tree": {"a": 1, "took": 2.5}}}, separators=(",", ":"))
    assert timed_reply(inner.encode()) == (inner.encode(), 0.0)
    assert timed_reply(inner[:-1].encode() + b',"took":0.25}') == (inner.encode(), 0.25)
    assert timed_reply(b'{"ok":{}}') == (b'{"ok":{}}', 0.0)


class Collector(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    heard: list[bytes]

    def do_POST(self) -> None:
        self.heard.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_sends_its_spans_to_the_collector_it_was_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    """From the real web process, out of its sandbox, also what is left at a stop; a schedule tells no times."""
    heard: list[bytes] = []
    collector = ThreadingHTTPServer(("127.0.0.1", 0), type("Heard", (Collector,), {"heard": heard}))
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    found: dict[str, list[dict[str, object]]] = {}
    try:
        for schedule in (None, 2.0):
            with service(web=1, workers=1, traces=endpoint, schedule=schedule) as running:
                headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
                ask = f"{running.url}/v1/datasets/survey/ask"
                assert httpx.post(ask, json=ASK, headers=headers, timeout=SECONDS).status_code == 200
                files = httpx.get(f"{running.url}/v1/health", timeout=SECONDS).json()["web"]["files"]
                assert files == ("own" if launcher.landlock() else "shared")
            names = []
            for body in heard:
                sent = ExportTraceServiceRequest.FromString(body)
                assert {each.key: each.value.string_value for each in sent.resource_spans[0].resource.attributes} == {
                    "service.name": "sulq"
                }
                names += [span.name for scope in sent.resource_spans[0].scope_spans for span in scope.spans]
                assert b"alice" not in body
            found[str(schedule)] = names
            heard.clear()
    finally:
        collector.shutdown()
        collector.server_close()
    for names in found.values():
        assert {"POST /v1/datasets/{name}/ask", "clerk ask", "GET /v1/health", "clerk health"} <= set(names)
    assert "workers" in found["None"]
    assert "workers" not in found["2.0"]
    assert "Traceback" not in capfd.readouterr().err
