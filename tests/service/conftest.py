"""An application over a clerk in this process, for the tests of the server's web side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.door import Door
from tests.service.office import Office, survey


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """A dataset that analysts see, and one they do not."""
    with Door(Office(tmp_path, survey=survey(), hidden=survey())) as opened:
        yield opened
