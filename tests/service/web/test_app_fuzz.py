"""The OpenAPI document against the application: generated requests of each role, fitting and not (T87).

No response is a 5xx, holds a traceback, or differs from what the document says of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import positive_data_acceptance

from sulq.service.web.app import create_app
from sulq.service.web.limits import RateLimit
from tests import counts
from tests.service.door import Door
from tests.service.office import Office, survey

# A text that fits the schema need not be SQL this database can answer, and a name need not be one it knows.
NOT_PROMISED = [positive_data_acceptance]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    (tmp_path / "people.csv").write_text("age\n1\n")
    made = Office(tmp_path, survey=survey())
    yield made
    made.close()


def fuzz(operation: object, mode: GenerationMode, examples: int, check: Callable[[schemathesis.Case], None]) -> None:
    """So many generated requests of one route."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=not counts.auditing(),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        check(case)

    run()


@pytest.mark.audit
@pytest.mark.parametrize("role", ["owner", "analyst", "auditor", None])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_generated_requests_get_what_the_document_says_T87(
    office: Office, role: str | None, mode: GenerationMode
) -> None:
    """Status, media type, body and headers of every response are documented; none is the server's failure."""
    app = create_app(office.call, replace(office.service, hosts=(asgi.HOST,)), console=False, jobs=office.near.client)
    app.app.state.limits = replace(app.app.state.limits, failures=RateLimit(10**9))  # wrong tokens are part of the game
    owner = {"Authorization": f"Bearer {office.tokens['owner']}"}
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=owner)
    headers = {} if role is None else {"Authorization": f"Bearer {office.tokens[role]}"}
    examples = counts.count(f"fuzzed requests a route, {role}, {mode.value}", short=3, long=200)
    asked = set()

    def check(case: schemathesis.Case) -> None:
        if "datasets/{name}" in case.operation.path and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = "survey"
        response = case.call(headers=headers)
        asked.add((case.operation.label, response.status_code))
        assert response.status_code < 500, response.text
        assert "Traceback" not in response.text
        assert not any(token in response.text for token in office.tokens.values())
        case.validate_response(response, excluded_checks=NOT_PROMISED, headers=headers)

    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.POSITIVE or operation.body or operation.path_parameters or operation.query:
            fuzz(operation, mode, examples, check)
    assert len({label for label, _ in asked}) >= (20 if mode is GenerationMode.POSITIVE else 10)
    if role == "owner" and mode is GenerationMode.POSITIVE:
        assert {200, 400} <= {status for _, status in asked}, "the control: some requests get through"


BODIES = (
    b"", b"null", b"[]", b"{}", b"{", b"\xff\xfe", b"\x00", b'"\\ud800"', b"NaN", b'{"sql": NaN}',
    b'{"sql": 1e999}', b"1" * 5000,
    b"[" * 5000 + b"]" * 5000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"sql": "SELECT 1", "sql": 2}',
    b'{"sql": {"$gt": ""}}',
    b'{"sql": "\\u0000", "spend": {"epsilon": -1}}',
    b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 1e-400}}',

       b'{"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}, "within": 1e400}',
    '{"sql": "é"}'.encode("utf-16"),
    b'{"question": {"kind": "Sums", "values": [[]]}, "spend": {"epsilon": 0.1}}',
    b'{"question": [[[[]]]], "spend": []}',
)  # fmt: skip
TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-7", "")


def test_odd_bodies_get_an_error_of_ours_T30(office: Office) -> None:
    """What no schema would generate, at every route that takes a body: a documented refusal, and nothing is spent."""
    with Door(office) as door:
        routes = door.get("/v1/openapi.json", "owner").json()["paths"]
        before = door.get("/v1/datasets/survey/budget", "owner")
        faults, seen = [], set()
        takes = [(method, path) for path, of in routes.items() for method, told in of.items() if "requestBody" in told]
        for method, path in takes:
            place = re.sub("{[a-z_]+}", "survey", path)
            for number, body in enumerate(BODIES):
                headers = {"Content-Type": TYPES[number % len(TYPES)]}
                found = door.request(method.upper(), place, role="owner", content=body, headers=headers)
                seen.add(found.status_code)
                told = found.status_code < 400 or "code" in found.json().get("error", {})
                if found.status_code >= 500 or not told or "Traceback" in found.text:
                    faults.append(f"{method} {path} {body[:60]!r}: {found.status_code} {found.text[:200]}")
        assert faults == []
        assert before.text == door.get("/v1/datasets/survey/budget", "owner").text
        assert {400} <= seen
        assert len(takes) >= 5
