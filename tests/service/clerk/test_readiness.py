"""Readiness: which datasets cannot be asked and why, looked at on a beat of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sulq.errors import CuratorError, SetupError, SulqError
from sulq.service.clerk.readiness import OK, PROBLEM, STARTING, Readiness
from sulq.service.clerk.worker_pool import OpenDataset


class Rows:
    """Workers, of a dataset that needs none."""

    def __init__(self, *workers: str) -> None:
        self.workers = list(workers)
        self.stopped: SulqError | None = None


def test_readiness_names_what_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening, stopped, without workers for a while; it changes when it is looked at, and at no other time."""
    rows = Rows("w")
    held = OpenDataset("one", rows=rows)  # type: ignore[arg-type]
    datasets = {"one": held}
    found = Readiness(datasets)
    assert (found.status, found.told()["problems"]) == (STARTING, [])

    def looked() -> tuple[str, list[str]]:
        found.look()
        return found.status, [str(problem["code"]) for problem in found.told()["problems"]]

    assert looked() == (STARTING, ["not-ready"])
    held.curator = object()  # type: ignore[assignment]
    assert found.status == STARTING
    assert looked() == (OK, [])
    rows.stopped = SetupError("source-changed", "It changed.")
    assert looked() == (PROBLEM, ["source-changed"])
    rows.stopped = None
    now: Callable[[], float] = time.monotonic
    rows.workers.clear()
    assert looked() == (OK, []), "it is being started again"
    monkeypatch.setattr(time, "monotonic", lambda: now() + 31)
    assert looked() == (PROBLEM, ["not-ready"])
    rows.workers.append("w")
    assert looked() == (OK, [])
    held.fault = CuratorError("ledger-failed", "No.")
    datasets["two"] = OpenDataset("two")
    assert looked() == (PROBLEM, ["ledger-failed", "not-ready"])
    datasets.clear()
    assert looked() == (OK, [])
