"""Settings every test runs under: Hypothesis profiles, and the bookkeeping of tests/counts.py."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import certified, counts

# Two busy cores make wall-clock deadlines a coin toss; what is slow is bounded by counts instead.
# `make test` runs the same examples every time; `make audit` looks for new ones.
settings.register_profile(
    "test",
    deadline=None,
    derandomize=not counts.auditing(),
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark comes first, so that one process of several runs it all: each would start a Java of its own."""
    items.sort(key=lambda item: "spark" not in item.nodeid.lower() and item.get_closest_marker("spark") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: looking through it again and again takes time alone."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def no_hidden_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error of a database's is answered around (T30), so that no analyst sees it; a test must."""
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    log = logging.getLogger("sulq.sources")
    log.addHandler(handler)
    yield
    log.removeHandler(handler)
    if request.node.get_closest_marker("by_hand") is None:
        assert not [line for line in seen if line.startswith(("asked again by hand", "streamed"))]


_unsettled: set[str] = set()
_modules: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Settle the counts a test asked for once its outcome is known."""
    report = yield
    module = item.getparent(pytest.Module).obj.__name__
    _modules.add(module)
    if not report.passed:
        _unsettled.add(module)
    if call.when != "setup":
        counts.settle(item.nodeid, passed=report.passed)
    return report


def pytest_sessionfinish() -> None:
    """Settle the counts modules asked for while they were imported, if none of their tests failed or was skipped."""
    for module in _modules:
        counts.settle(module, passed=module not in _unsettled)
    gc.unfreeze()  # libraries report what is not freed at the end


WATCHED = ("compile", "conformance", "curator", "privacy", "sources", "sql")  # they ask DuckDB the kernel's corpus


@pytest.fixture(autouse=True)
def certificates(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certify every statement of the tests that ask engines, but of those that make a statement fail."""
    certified.loose.clear()
    watched = request.node.path.relative_to(Path(__file__).parent).parts[0] in WATCHED
    if watched and request.node.get_closest_marker("by_hand") is None:
        certified.watch(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[object]:
    """A statement without a certificate, or with one that is looser than its plan, fails the test that asked it."""
    outcome = yield
    assert certified.loose == []
    return outcome
