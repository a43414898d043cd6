"""What each route does for each role: the one table that the tests and the reference page go by (T79)."""

from __future__ import annotations

from dataclasses import dataclass, field

COUNT = "SELECT COUNT(*) FROM survey"
QUESTION = {"kind": "Sums", "values": [{"kind": "Lit", "value": 1}]}
SPEND = {"epsilon": 0.01}
ASKED = {"question": QUESTION, "spend": SPEND}
JOB = {"kind": "queries", "parameters": {"queries": [COUNT], "spend": SPEND}}
REGISTERED = {
    "name": "fresh",
    "file": "people.csv",
    "columns": {"age": {"kind": "Int", "lo": 0, "hi": 120}},
    "budget": {"kind": "Epsilon", "epsilon": 1},
}


@dataclass(frozen=True)
class Row:
    """What a route does for owner, analyst and auditor; `body` makes the request one that fits."""

    owner: int
    analyst: int
    auditor: int
    body: object = None
    query: dict[str, str] = field(default_factory=dict)


# Everything else follows: no token, a wrong, a revoked and an expired one are 401 everywhere but for routes.OPEN; a
# dataset that is not one's own is 404 wherever the role may come at all.
MATRIX = {
    ("GET", "/v1/health"): Row(200, 200, 200),
    ("GET", "/v1/live"): Row(200, 200, 200),
    ("GET", "/v1/ready"): Row(200, 200, 200),
    ("GET", "/v1/me"): Row(200, 200, 200),
    ("GET", "/v1/datasets"): Row(200, 200, 200),
    ("GET", "/v1/datasets/{name}"): Row(200, 200, 200),
    ("POST", "/v1/datasets"): Row(201, 403, 403, REGISTERED),
    ("DELETE", "/v1/datasets/{name}"): Row(204, 403, 403),
    ("POST", "/v1/look"): Row(200, 403, 403, {"file": "people.csv"}),
    ("POST", "/v1/check"): Row(200, 403, 403, REGISTERED),
    ("POST", "/v1/datasets/{name}/ask"): Row(200, 200, 403, ASKED),
    ("POST", "/v1/datasets/{name}/foresee"): Row(200, 200, 403, ASKED),
    ("POST", "/v1/datasets/{name}/sql"): Row(200, 200, 403, {"sql": COUNT, "spend": SPEND}),
    ("POST", "/v1/datasets/{name}/explain"): Row(200, 200, 403, {"sql": COUNT, "spend": SPEND}),
    ("POST", "/v1/datasets/{name}/plan"): Row(200, 200, 403, {"queries": [COUNT], "spend": SPEND}),
    ("POST", "/v1/datasets/{name}/afford"): Row(200, 200, 403, {"asks": [{"sql": COUNT, "spend": SPEND}]}),
    ("GET", "/v1/datasets/{name}/budget"): Row(200, 200, 200),
    ("GET", "/v1/datasets/{name}/transcript"): Row(200, 200, 200),
    ("GET", "/v1/datasets/{name}/receipts/{seq}"): Row(200, 200, 200),
    ("POST", "/v1/datasets/{name}/verify"): Row(200, 403, 200),
    ("GET", "/v1/datasets/{name}/export"): Row(200, 403, 200),
    ("PUT", "/v1/datasets/{name}/shares/{analyst}"): Row(200, 403, 403, {"share": 0.5}),
    ("GET", "/v1/analysts"): Row(200, 403, 403),
    ("POST", "/v1/analysts"): Row(201, 403, 403, {"name": "newcomer"}),
    ("DELETE", "/v1/analysts/{name}"): Row(204, 403, 403),
    ("POST", "/v1/analysts/{name}/rotate"): Row(201, 403, 403, {"overlap": 60}),
    ("POST", "/v1/sessions"): Row(201, 201, 201),
    ("DELETE", "/v1/sessions"): Row(204, 204, 204),
    ("DELETE", "/v1/sessions/this"): Row(204, 204, 204),
    ("GET", "/v1/access"): Row(200, 403, 403),
    ("GET", "/v1/kinds"): Row(200, 200, 200),
    ("POST", "/v1/datasets/{name}/jobs"): Row(202, 202, 403, JOB),
    ("GET", "/v1/jobs"): Row(200, 200, 200),
    ("GET", "/v1/jobs/{key}"): Row(200, 200, 404),
    ("DELETE", "/v1/jobs/{key}"): Row(200, 200, 404),
    ("GET", "/v1/metrics"): Row(200, 403, 403),
}
