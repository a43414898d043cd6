"""A console over a clerk in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq import Epsilon
from tests.service.console.visiting import Visitor
from tests.service.office import Office, survey


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    """A small survey with a small budget."""
    with Visitor(Office(tmp_path, survey=survey(Epsilon(2)))) as opened:
        yield opened
