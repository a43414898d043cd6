"""Which files each process of the server can open: tried in a process started as that part is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import sulq
from sulq.server import apart, process, reach
from sulq.server.declared import declare
from sulq.server.settings import Service
from tests.server.service import COLUMNS, found_by_children, service, survey

READ, CHANGED, CLOSED = [True, False], [True, True], [False, False]


def pried(part: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, dict[str, list[bool]]]:
    """What a process started as a part says of itself, and what it could read and change."""
    declared = declare("survey", survey(folder / "survey.parquet"), COLUMNS, budget=sulq.Epsilon(9))
    told = Service(folder / "state", tls_cert=folder / "cert.pem", tls_key=folder / "key.pem")
    told.state.mkdir()
    names = ("survey.ledger", "survey.ledger-wal", "survey.prepared", "other.csv", "cert.pem", "key.pem")
    files = [folder / name for name in names]
    files += [told.access, folder / "survey.prepared.d" / "rows", folder / "survey.prepared.d" / "new"]
    for file in files[:-2]:
        file.touch()
    settings = {
        "service": told.to_json(), "dataset": declared.for_worker().to_json(), "path": str(declared.tables[0].data),
        "tries": [str(file) for file in [folder / "survey.parquet", folder / "spill" / "new", *files]],
    }  # fmt: skip
    monkeypatch.setitem(process.PARTS, part, "tests.server.prying")
    with found_by_children(""):
        monkeypatch.setitem(process.PARTS, part, "tests.server.prying")
        child = process.launched(part, settings, (), folder / "spill", stdout=subprocess.PIPE)
        said = json.loads(child.stdout.read())
        child.wait()
        child.stdin.close()
        child.stdout.close()
    return said, {str(Path(path).relative_to(folder)): found for path, found in said["opens"].items()}


@pytest.mark.parametrize("part", ["web", "worker", "look", "clerk"])
def test_R10_T69_a_part_opens_its_own_files_alone(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web opens neither data, ledgers nor the access store; a worker its data and its copy, and none of the rest.

    Control: the clerk, which is not kept apart, could open them all.
    """
    if not apart.landlock():
        pytest.skip("this kernel has no Landlock")
    said, found = pried(part, tmp_path, monkeypatch)
    own = {
        "web": {"cert.pem": READ, "key.pem": READ, "spill/new": CHANGED},
        "worker": {
            "survey.parquet": READ, "spill/new": CHANGED, "survey.prepared.d/rows": CHANGED,
            "survey.prepared.d/new": [False, True],
        },
        "look": {"survey.parquet": READ, "spill/new": CHANGED},
    }  # fmt: skip
    if part == "clerk":
        assert all(found[name] == CHANGED for name in ("survey.parquet", "survey.ledger", "state/access.db"))
        assert said["files"] == "shared"
        return
    expected = {name: own[part].get(name, CLOSED) for name in found}
    expected["spill/new"] = [False, True]  # nothing to read before it is made
    assert found == expected
    assert (said["files"], said["rights"]) == ("own", "none")


def test_health_says_how_processes_are_kept_apart() -> None:
    """Of the workers and of the web: whose files, which rights; nothing else of them."""
    with service(web=1) as running:
        told = running.line.ask("health")["workers"]
        assert set(told) == {"network", "files", "rights"}
        assert told["files"] == (["own"] if apart.landlock() else ["shared"])


def test_a_copy_made_elsewhere_is_taken_over(tmp_path: Path) -> None:
    """A prepared copy at the owner's place is linked into the worker's folder once; a later one there is left alone."""
    place = tmp_path / "survey.prepared"
    settings = {"dataset": {"prepared": str(place)}}
    assert reach.settled({"dataset": {"prepared": False}}) == {"dataset": {"prepared": False}}
    own = Path(reach.settled(settings)["dataset"]["prepared"])
    assert own.parent == tmp_path / "survey.prepared.d"
    assert (own.parent.stat().st_mode & 0o777, own.exists()) == (0o700, False)
    place.write_text("first")
    assert Path(reach.settled(settings)["dataset"]["prepared"]).read_text() == "first"
    own.unlink()
    own.write_text("newer")
    reach.settled(settings)
    assert (own.read_text(), place.read_text()) == ("newer", "first")
