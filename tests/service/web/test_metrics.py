"""What a scrape prints: read by Prometheus' own parser and by a strict one here, and free of any word of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

import sulq
from sulq.errors import CODES
from sulq.service.clerk.calls import CALLS
from sulq.service.web import metrics
from sulq.service.web.routes import routes
from tests.service.door import Door
from tests.service.office import Office, survey

ROOT = Path(__file__).resolve().parents[3]
SQL = "/v1/datasets/survey/sql"
CANARY = "CANARY-7f31"
OPEN = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"}
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)+)\})? (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\n"])*)"')


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with Door(Office(tmp_path, survey=survey(sulq.EpsilonDelta(1000, 1e-6)))) as found:
        yield found


def used(door: Door) -> str:
    """A server after answers, refusals of several kinds, and words that somebody would like to see printed."""
    ask = {"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 1}}
    for _ in range(3):
        assert door.post(SQL, ask, "analyst").status_code == 200
    door.post(SQL, {**ask, "sql": f"SELECT COUNT(*) FROM survey WHERE city = '{CANARY}'"}, "analyst")
    door.post(SQL, {**ask, "spend": {"epsilon": 1000}}, "analyst")
    door.post(SQL, {CANARY: 1}, "analyst")
    door.post(f"/v1/datasets/{CANARY}/ask", {"question": {}}, "analyst")
    door.get(f"/v1/datasets/{CANARY}", "analyst")
    door.get(f"/{CANARY}", "analyst")
    door.request(CANARY, SQL, role="analyst")
    door.request(CANARY.replace("-", ""), "/v1/me", role="analyst")
    door.get("/v1/me", headers={"Authorization": f"Bearer {CANARY}"})
    return door.get("/v1/metrics", "owner").text


def series(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every line taken apart by the exposition format's rules, and each family's place checked."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    kinds: dict[str, str] = {}
    helped, family = set(), ""
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, meaning = line[7:].split(" ", 1)
            assert name not in helped, "said once"
            assert meaning
            helped.add(name)
            family = name
            continue
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert (name, name in kinds) == (family, False), "right after its help, once"
            kinds[name] = kind
            continue
        name, labels, value = LINE.fullmatch(line).groups()
        suffix = name.removeprefix(family)
        assert suffix in ({"_bucket", "_sum", "_count"} if kinds[family] == "histogram" else {""}), line
        assert (kinds[family] == "counter") == name.endswith("_total"), line
        assert not name.endswith(("_milliseconds", "_kilobytes", "_mib")), "base units"
        key = tuple(sorted(LABEL.findall(labels or "")))
        assert len(dict(key)) == len(key)
        assert key not in found.setdefault(name, {}), "a series is printed once"
        found[name][key] = float(value)
    return found


def check_histograms(found: dict[str, dict[tuple[tuple[str, str], ...], float]]) -> int:
    """Buckets are cumulative and the last one is the count; how many histograms there are."""
    number = 0
    for name in [name for name in found if name.endswith("_bucket")]:
        family = name.removesuffix("_bucket")
        for key, count in found[f"{family}_count"].items():
            own = {dict(k)["le"]: v for k, v in found[name].items() if set(key) < set(k)}
            values = [own[bound] for bound in sorted(own, key=float)]
            assert values == sorted(values)
            assert own["+Inf"] == values[-1] == count
            assert len(values) == len(metrics.BOUNDS) + 1
            assert count > 0
            assert 0 < found[f"{family}_sum"][key] < 600 * count
            number += 1
    return number


def test_a_scrape_is_what_prometheus_reads(door: Door) -> None:
    """The plain form by two parsers: HELP and TYPE once a family, _total, base units, cumulative histograms."""
    text = used(door)
    found = series(text)
    assert check_histograms(found) >= 5
    families = {family.name: family for family in plain_families(text)}
    assert {name.removesuffix("_total") for name, _, _ in metrics.FAMILIES} >= set(families)
    parsed = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}
    mine = {(name, key): value for name, lines in found.items() for key, value in lines.items()}
    assert parsed == mine
    reply = door.get("/v1/metrics", "owner")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_a_scrape_in_open_metrics_is_what_its_parser_reads(door: Door) -> None:
    """Asked for by Accept, as Prometheus does; the parser of that form is strict, and finds the same series."""
    plain = set(series(used(door)))
    reply = door.get("/v1/metrics", "owner", headers=OPEN)
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert reply.text.endswith("\n# EOF\n")
    found = list(open_metrics_families(reply.text))
    assert {sample.name for family in found for sample in family.samples} >= plain
    with pytest.raises(ValueError, match="EOF"):
        list(open_metrics_families(reply.text.removesuffix("# EOF\n")))


def test_no_label_comes_from_a_request_T40_T88(door: Door) -> None:
    """Paths, methods, datasets, columns and tokens that a caller makes up stand nowhere; each label is of a fixed set.

    Control: the same words are found in what the clerk was sent.
    """
    text = used(door)
    assert "CANARY" not in text
    assert any(CANARY in frame for frame in door.office.seen)
    patterns = {route.path for route in routes()} | {"none", "/v1/openapi.json"}
    codes = {"ok", "paid", "reused", "none", "unexpected"} | set(CODES)
    fixed = {
        "route": patterns, "method": {"GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "none"}, "process": {"web-0"},
        "call": {*CALLS, "unknown"}, "outcome": codes, "code": set(CODES), "dataset": {"survey"},
        "unit": {"epsilon", "delta"}, "analyst": {"analyst"}, "version": {"0"},
    }  # fmt: skip
    for name, lines in series(text).items():
        for key in lines:
            for label, value in key:
                if label == "status":
                    assert 200 <= int(value) < 600
                elif label == "le":
                    assert name.endswith("_bucket")
                else:
                    assert value in fixed[label], (name, label, value)


def test_counts_and_budgets_are_those_of_what_was_done(door: Door) -> None:
    """Asks by outcome, free calls, refusals by code, and the budget to the last digit, in its own unit."""
    found = series(used(door))

    def of(name: str, **labels: str) -> float:
        return next(value for key, value in found[name].items() if set(labels.items()) <= set(key))

    assert of("sulq_asks_total", dataset="survey", outcome="paid") == 1
    assert of("sulq_asks_total", dataset="survey", outcome="reused") == 2
    assert of("sulq_http_refusals_total", code="budget-exceeded") == 1
    assert of("sulq_http_refusals_total", code="unauthorized") == 1
    assert of("sulq_http_requests_total", route=SQL.replace("survey", "{name}"), status="200") == 3
    assert of("sulq_ask_duration_seconds_count", dataset="survey") >= 3
    assert of("sulq_clerk_calls_total", call="facts", outcome="ok") >= 1
    assert of("sulq_clerk_calls_total", call="ask", outcome="not-found") == 1
    assert [of("sulq_budget_limit", unit=unit) for unit in ("epsilon", "delta")] == [1000, 1e-6]
    spent = of("sulq_budget_spent", dataset="survey", unit="epsilon")
    assert 0 < spent <= 1
    assert of("sulq_budget_remaining", dataset="survey", unit="epsilon") == pytest.approx(1000 - spent)
    assert of("sulq_share_spent", analyst="analyst", unit="epsilon") == spent
    assert of("sulq_dataset_ready", dataset="survey") == 1


def test_a_label_with_quotes_breaks_and_backslashes_stays_one_T88() -> None:
    """Whatever an owner called a thing, it is read back as it was, and adds no line."""
    odd = 'a"b\\c\nd{}=,\\n'
    clerk = {"version": odd, "calls": [], "times": {}, "asks": [], "ask_times": {}, "events": {}}
    text = metrics.printed(metrics.Snapshot(clerk, {}, {}))
    assert text.count("\n") == 3
    assert [s.labels for f in plain_families(text) for s in f.samples] == [{"version": odd}]
    whole = metrics.printed(metrics.Snapshot(clerk, {}, {}), open_metrics=True)
    assert [s.labels for f in open_metrics_families(whole) for s in f.samples] == [{"version": odd}]


def test_metrics_are_the_owners_alone_T40(door: Door) -> None:
    """Nobody else sees a count, and a HEAD shows none."""
    for role, status in (("analyst", 403), ("auditor", 403), (None, 401)):
        assert door.get("/v1/metrics", role).status_code == status
    assert isinstance(door.request("HEAD", "/v1/metrics", role="owner"), httpx.Response)


def test_every_family_is_explained_where_an_operator_looks() -> None:
    """docs/operate/monitoring.md has a line for each family, and none of another; README of deploy/ aside."""
    page = (ROOT / "docs" / "operate" / "monitoring.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(sulq_[a-z_]+)` \| (\w+) \|", page, re.MULTILINE)
    assert told == [(name, kind) for name, kind, _ in metrics.FAMILIES]


def expressions(tree: object) -> Iterator[str]:
    """Every expression of a dashboard or of rules, wherever it stands."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name in {"expr", "query"} and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from expressions(item)


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:sulq|process|http)_[a-z_]+", expression))


def printable() -> set[str]:
    """Every name that a line of a scrape may begin with."""
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    return {name + suffix for name, kind, _ in metrics.FAMILIES for suffix in suffixes.get(kind, ("",))}


def test_the_dashboard_asks_for_what_is_printed_and_for_all_of_it() -> None:
    """Each expression names metrics that exist; what the page on monitoring promises is on a panel.

    Control: one letter more in a name is found.
    """
    board = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = list(expressions(board))
    assert len(asked) >= 20
    named = set().union(*map(names_in, asked))
    assert named <= printable()
    assert not names_in("rate(sulq_asks_totals[5m])") <= printable()
    for part in ("sulq_asks_total", "sulq_ask_duration_seconds_bucket", "sulq_http_refusals_total",
                 "sulq_dataset_ready", "sulq_budget_remaining", "sulq_workers", "sulq_jobs",
                 "sulq_process_cpu_seconds_total", "sulq_process_resident_memory_bytes"):  # fmt: skip
        assert part in named
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["targets"] and panel["title"] for panel in panels)
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(cells)) == len(cells), "no panel lies on another"
    assert all(x < 24 for x, _ in cells)


def test_the_alerts_ask_for_what_is_printed() -> None:
    """Each rule names metrics that exist, for how long, and says what to do; the scrape reads its token from a file."""
    text = (ROOT / "deploy" / "prometheus-rules.yml").read_text(encoding="utf-8")
    rules = text.split("- alert: ")[1:]
    assert len(rules) >= 5
    for rule in rules:
        expression = re.search(r"expr: (.*)", rule)[1]
        assert names_in(expression)
        assert names_in(expression) <= printable()
        assert "summary: " in rule
        assert re.search(r"for: \d+m", rule)
    scrape = (ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8")
    assert "credentials_file:" in scrape
    assert "metrics_path: /v1/metrics" in scrape
    assert "prometheus-rules.yml" in scrape
