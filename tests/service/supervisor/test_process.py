"""A server's folder: one's own alone, gone with it, and swept up after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.service.supervisor.process import LOCK, PREFIX, RunFolder, sweep
from tests.service.service import ROOT, service

SPILLED = "Haifa,Lod,Yafo"


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary files of these tests lie by themselves, under a name short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        monkeypatch.setenv("TMPDIR", name)
        yield Path(name)


def killed() -> Path:
    """The folder of a process that was killed with something of its workers' in it."""
    code = (
        "import os, signal; from sulq.service.supervisor.process import RunFolder; f = RunFolder(); "
        "(f.path / 'worker').mkdir(); "
        f"(f.path / 'worker' / 'spill').write_text({SPILLED!r}); print(f.path, flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    paths = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=paths)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return Path(done.stdout.strip())


def test_what_a_killed_server_left_is_removed_at_the_next_start_T90() -> None:
    """With all that its workers had spilled; a folder whose server lives is left alone (T90)."""
    left, living = killed(), RunFolder()
    assert (left / "worker" / "spill").read_text() == SPILLED  # control: a kill does leave it
    assert sweep() == [left]
    assert not left.exists()
    assert living.path.exists()
    assert sweep() == []
    living.remove()
    living.remove()
    assert not living.path.exists()


def test_a_folder_is_ones_own_alone_T90() -> None:
    """Mode 0700; nobody without its name gets in, and its lock is no other's to take."""
    found = RunFolder()
    assert found.path.stat().st_mode & 0o777 == 0o700
    assert (found.path / LOCK).stat().st_mode & 0o777 == 0o600
    found.remove()


def test_nothing_is_removed_but_what_a_server_left_T90(place: Path) -> None:
    """A folder of that name without a lock, one that others may enter, a link, a file: none of it is touched."""
    elsewhere = place / "elsewhere"
    open_one = place / f"{PREFIX}open"
    bare = place / f"{PREFIX}bare"
    for folder in (elsewhere, open_one, bare):
        folder.mkdir(mode=0o700)
    for folder in (elsewhere, open_one):
        (folder / LOCK).touch(mode=0o600)
    open_one.chmod(0o755)
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").write_text("a file")
    assert sweep() == []
    assert all(path.exists() for path in (elsewhere, open_one, bare, place / f"{PREFIX}file"))


def test_a_supervisor_that_was_killed_leaves_no_process_and_its_folder_to_the_next_T90(place: Path) -> None:
    """`kill -9` of the whole service's supervisor: its processes end by themselves, the next start cleans up."""
    code = (
        "import time; from tests.service.service import service\n"
        "with service(workers=1) as running:\n"
        "    print(running.supervisor.folder, *running.supervisor.pids().values(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    paths = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=paths
    ) as process:
        assert process.stdout is not None
        folder, *pids = process.stdout.readline().split()
        process.kill()
    assert Path(folder).parent == place
    until = time.monotonic() + 120
    while any(Path(f"/proc/{pid}/root").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}/root").exists() for pid in pids)
    assert Path(folder).exists()
    with service(workers=1):
        assert not Path(folder).exists()
