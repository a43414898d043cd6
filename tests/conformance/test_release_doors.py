"""Every release and selection published here, question by question over HTTP, and as a job: one object, to the byte.

The noise is left out by test code, on made-up data, as in test_http.py; a release that joins RELEASES or
SELECTIONS joins this suite, its parameters filled by tests/release/programs.py.
"""

from __future__ import annotations

import base64
import io
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sulq.testing
from sulq import Epsilon, release, select
from sulq.api.client import Client
from sulq.api.named_asks import NamedAsks
from sulq.release.base import Release
from sulq.select.selected import Selected
from sulq.service.jobs.publication import SELECTION, Published
from tests.conformance.test_http import far, without_noise
from tests.release.programs import EACH, Program, people
from tests.service.door import Door


@pytest.fixture(scope="module")
def far_people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NamedAsks, Client, Door]]:
    with people() as database:
        office = without_noise(tmp_path_factory.mktemp("people"), database)
        with far(office) as client, Door(office) as door:
            yield sulq.testing.exact(database), client, door


@pytest.fixture(autouse=True)
def _same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Synthetic rows are drawn from public weights: here the same every time."""
    seeded = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=7: seeded(seed))


def told(found: Release | Selected) -> dict[str, object]:
    """All that something published holds, but for which debits paid for it."""
    shown = Published(found)
    described = json.loads(json.dumps(shown.description()))
    _without_receipts(described)
    tables = [table.to_json() for table in shown.tables(10**9)]
    return {"said": described, "tables": json.loads(json.dumps(tables, allow_nan=False))}


def _without_receipts(tree: object) -> None:
    if isinstance(tree, dict):
        for name in ("receipt", "receipts", "remaining"):
            tree.pop(name, None)
        for part in tree.values():
            _without_receipts(part)
    elif isinstance(tree, list):
        for part in tree:
            _without_receipts(part)


def unpacked(packed: str, folder: Path) -> Release | Selected:
    """What the archive of a job holds."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed))) as archive:
        archive.extractall(folder)
    if (folder / SELECTION).exists():
        return select.load(folder / SELECTION)
    assert (folder / "index.html").exists()
    return release.load(folder)


def done(door: Door, body: object) -> dict[str, object]:
    """What a job finds."""
    key = door.post("/v1/datasets/survey/jobs", body, "owner").json()["id"]
    deadline = time.monotonic() + 120
    while (now := door.get(f"/v1/jobs/{key}", "owner").json())["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert now["state"] == "done", now["error"]
    assert now["done"] == now["total"] > 0
    return now["result"]


@pytest.mark.parametrize("program", EACH, ids=lambda program: program.name)
def test_a_release_is_published_over_http_as_here(
    far_people: tuple[NamedAsks, Client, Door], tmp_path: Path, program: Program
) -> None:
    """Here, over HTTP, as a job, and from the job's archive. Control: another spend is another release."""
    here, there, door = far_people
    wanted = told(program(here))
    assert told(program(there)) == wanted
    result = done(door, program.job())
    assert told(unpacked(result["archive"], tmp_path)) == wanted
    assert result["release"]["title"] == wanted["said"]["title"]
    assert [table["title"] for table in result["tables"]] == [table["title"] for table in wanted["tables"]]
    assert told(program(here, spend=Epsilon(3))) != wanted
