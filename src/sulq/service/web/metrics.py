"""GET /v1/metrics: every family of metrics in one table, and the two text forms that Prometheus reads.

A label is the name of a process, a dataset, a worker, an analyst or a route's pattern, a code or a unit: a word of the
program or of its owner, from a set that requests do not make larger. Never a word of a question, never one of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

from sulq.service.logs import BOUNDS

PLAIN_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# Name, kind and meaning of each family, in the order in which they are printed.
FAMILIES: Final[tuple[tuple[str, str, str], ...]] = (
    ("sulq_build_info", "gauge", "1; the version as a label."),
    ("sulq_process_cpu_seconds_total", "counter", "Processor time of a web process or the clerk."),
    ("sulq_process_start_time_seconds", "gauge", "When the process started, in seconds since 1970."),
    ("sulq_process_resident_memory_bytes", "gauge", "Memory of a web process or the clerk."),
    ("sulq_process_open_fds", "gauge", "Open files and connections of a web process or the clerk."),
    ("sulq_http_requests_total", "counter", "Requests by the route's pattern and the status."),
    ("sulq_http_request_duration_seconds", "histogram", "Time from a request's head to the end of its response."),
    ("sulq_http_requests_in_flight", "gauge", "Requests that are being answered."),
    ("sulq_http_refusals_total", "counter", "Requests that were refused or failed, by the error's code."),
    ("sulq_clerk_calls_total", "counter", "Calls of the clerk: facts, foresee and afford are free; ok or a code."),
    ("sulq_clerk_call_duration_seconds", "histogram", "Time that the clerk took for a call."),
    ("sulq_asks_total", "counter", "Asks: paid (a debit), reused (a stored answer, free), none (none stored), a code."),
    ("sulq_ask_duration_seconds", "histogram", "Time that the clerk and the workers took for an ask."),
    ("sulq_asks_in_flight", "gauge", "Asks between their arrival and their reply."),
    ("sulq_asks_waiting", "gauge", "Asks that wait for an idle worker."),
    ("sulq_late_answers_total", "counter", "Answers that missed the tick of the release schedule."),
    ("sulq_dataset_ready", "gauge", "1 if the dataset can be asked, else 0."),
    ("sulq_dataset_problem", "gauge", "1 while a dataset has a problem, by the error's code."),
    ("sulq_budget_limit", "gauge", "The budget, in its own units."),
    ("sulq_budget_spent", "gauge", "What all answers so far took of it."),
    ("sulq_budget_remaining", "gauge", "What is left of it."),
    ("sulq_share_spent", "gauge", "What an analyst's answers took."),
    ("sulq_share_remaining", "gauge", "The largest loss that an analyst could still be granted."),
    ("sulq_workers", "gauge", "Workers that are connected."),
    ("sulq_workers_idle", "gauge", "Workers that wait for an ask."),
    ("sulq_worker_starts_total", "counter", "How often a worker that is connected was started."),
    ("sulq_worker_events_total", "counter", "overrun, worker-lost: a question ended so; no-worker: none was free."),
    ("sulq_jobs", "gauge", "Jobs that are remembered, by their state."),
)
_COUNTED: Final = "_total"


class MetricLine(NamedTuple):
    """One line: what follows the family's name, the labels, the value."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is printed: the clerk's word, that of each web process, and jobs by their state."""

    clerk: Mapping[str, Any]
    web: Mapping[str, Mapping[str, Any]]
    jobs: Mapping[str, int]

    def samples(self) -> dict[str, list[MetricLine]]:
        """Every family's samples, by its name."""
        found: dict[str, list[MetricLine]] = {name: [] for name, _, _ in FAMILIES}
        for part in (self._of_processes(), self._of_requests(), self._of_calls(), self._of_datasets()):
            for name, sample in part:
                found[name].append(sample)
        return found

    def _of_processes(self) -> Iterator[tuple[str, MetricLine]]:
        yield "sulq_build_info", MetricLine({"version": str(self.clerk.get("version", ""))}, 1)
        parts = {"clerk": self.clerk.get("process", {})} | {name: told["process"] for name, told in self.web.items()}
        names = {
            "cpu_seconds": "sulq_process_cpu_seconds_total",
            "start_seconds": "sulq_process_start_time_seconds",
            "resident_bytes": "sulq_process_resident_memory_bytes",
            "open_files": "sulq_process_open_fds",
        }
        for process, used in parts.items():
            for what, value in used.items():
                yield names[what], MetricLine({"process": process}, value)
        for state, number in self.jobs.items():
            yield "sulq_jobs", MetricLine({"state": state}, number)

    def _of_requests(self) -> Iterator[tuple[str, MetricLine]]:
        for process, told in self.web.items():
            own = {"process": process}
            for each in told["requests"]:
                labels = own | {name: each[name] for name in ("method", "route", "status")}
                yield "sulq_http_requests_total", MetricLine(labels, each["count"])
            for each in told["times"]:
                labels = own | {name: each[name] for name in ("method", "route")}
                yield from _histogram("sulq_http_request_duration_seconds", labels, each)
            for each in told["refusals"]:
                yield "sulq_http_refusals_total", MetricLine(own | {"code": each["code"]}, each["count"])
            yield "sulq_http_requests_in_flight", MetricLine(own, told["under_way"])

    def _of_calls(self) -> Iterator[tuple[str, MetricLine]]:
        for each in self.clerk["calls"]:
            yield (
                "sulq_clerk_calls_total",
                MetricLine({"call": each["call"], "outcome": each["outcome"]}, each["count"]),
            )
        for call, times in self.clerk["times"].items():
            yield from _histogram("sulq_clerk_call_duration_seconds", {"call": call}, times)
        for each in self.clerk["asks"]:
            yield "sulq_asks_total", MetricLine({"dataset": each["dataset"], "outcome": each["outcome"]}, each["count"])
        for dataset, times in self.clerk["ask_times"].items():
            yield from _histogram("sulq_ask_duration_seconds", {"dataset": dataset}, times)
        for event, number in self.clerk["events"].items():
            yield "sulq_worker_events_total", MetricLine({"event": event}, number)

    def _of_datasets(self) -> Iterator[tuple[str, MetricLine]]:
        names = {
            "ready": "sulq_dataset_ready",
            "late": "sulq_late_answers_total",
            "asks": "sulq_asks_in_flight",
            "waiting": "sulq_asks_waiting",
            "workers": "sulq_workers",
            "idle": "sulq_workers_idle",
        }
        for told in self.clerk.get("datasets", ()):
            own = {"dataset": told["name"]}
            yield from ((family, MetricLine(own, told[name])) for name, family in names.items())
            if told["problem"] is not None:
                yield "sulq_dataset_problem", MetricLine(own | {"code": told["problem"]}, 1)
            for part, amounts in told.get("budget", {}).items():
                yield from ((f"sulq_budget_{part}", sample) for sample in _amounts(own, amounts))
            for account in told.get("shares", ()):
                labels = own | {"analyst": account["analyst"]}
                for part in ("spent", "remaining"):
                    yield from ((f"sulq_share_{part}", sample) for sample in _amounts(labels, account[part]))
        for worker in self.clerk.get("workers", ()):
            labels = {"dataset": worker["dataset"], "worker": worker["worker"]}
            yield "sulq_worker_starts_total", MetricLine(labels, worker["generation"])


def _amounts(labels: Mapping[str, str], amounts: Mapping[str, float]) -> Iterator[MetricLine]:
    return (MetricLine({**labels, "unit": unit}, value) for unit, value in amounts.items())


def _histogram(name: str, labels: Mapping[str, str], told: Mapping[str, Any]) -> Iterator[tuple[str, MetricLine]]:
    """A histogram's lines: in each bucket what stayed within its bound, those of the smaller bounds with them."""
    below = list(accumulate(told["counts"]))
    for bound, number in zip([*map(repr, BOUNDS), "+Inf"], below, strict=True):
        yield name, MetricLine({**labels, "le": bound}, number, "_bucket")
    yield name, MetricLine(labels, told["sum"], "_sum")
    yield name, MetricLine(labels, below[-1], "_count")


def printed(snapshot: Snapshot, *, open_metrics: bool = False) -> str:
    """The text of a scrape, in the plain form or in OpenMetrics'."""
    samples = snapshot.samples()
    lines: list[str] = []
    for name, kind, meaning in FAMILIES:
        if samples[name]:
            lines += _family(name, kind, meaning, samples[name], open_metrics=open_metrics)
    return "\n".join([*lines, *(["# EOF"] if open_metrics else [])]) + "\n"


def _family(name: str, kind: str, meaning: str, samples: Iterable[MetricLine], *, open_metrics: bool) -> Iterator[str]:
    shown = name.removesuffix(_COUNTED) if open_metrics and kind == "counter" else name
    yield f"# HELP {shown} {meaning}"
    yield f"# TYPE {shown} {kind}"
    for sample in samples:
        labels = ",".join(f'{key}="{_quoted(value)}"' for key, value in sample.labels.items())
        yield f"{name}{sample.suffix}{'{' + labels + '}' if labels else ''} {_number(sample.value)}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _quoted(text: str) -> str:
    """A label's value: newlines, quotes and backslashes cannot end it (T88)."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
