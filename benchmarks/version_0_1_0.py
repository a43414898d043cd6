"""Version 0.1.0 of the service, out of this repository's history, to be measured beside ours in one run.

It runs from a worktree of its own, by this environment (it asked for no other packages), with its own modules, server
and benchmark of it. Our crowd asks it over HTTP.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
NEXT: Final = "^version: 0\\.2\\.0"  # the subject of the commit after its last one
SERVE: Final = """
import json, sys
from pathlib import Path
from benchmarks.server import served
from sulq import __version__
folder, data = map(Path, sys.argv[1:])
with served(folder, data) as run:
    told = {"version": __version__, "port": run.port, "tokens": run.tokens, "pids": run.supervisor.pids()}
    print(json.dumps(told), flush=True)
    sys.stdin.read()
"""


class NoHistoryError(Exception):
    """The version is not to be had."""


def _git(*words: str) -> str:
    try:
        found = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistoryError("there is no history of version 0.1.0 here") from error
    return found.stdout.strip()


@contextlib.contextmanager
def checked_out(folder: Path) -> Iterator[Path]:
    """Its files, in a worktree that is removed again."""
    named = _git("log", "--format=%H", "-E", f"--grep={NEXT}").split()
    if not named:
        raise NoHistoryError("there is no history of version 0.1.0 here")
    _git("worktree", "add", "--detach", "--force", str(folder), f"{named[-1]}^")
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


@contextlib.contextmanager
def served(files: Path, folder: Path, data: Path) -> Iterator[dict[str, Any]]:
    """Its server over a copy of the data: `port`, `tokens` of its analysts, and `pids` of its parts by their names."""
    paths = os.pathsep.join([str(files / "src"), str(files)])
    words = [sys.executable, "-c", SERVE, str(folder), str(data)]
    run = subprocess.Popen(
        words, cwd=files, env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert run.stdout is not None
        told: dict[str, Any] = json.loads(run.stdout.readline() or "{}")
        if told.get("version") != "0.1.0":
            raise NoHistoryError("version 0.1.0 did not start")
        yield told
    finally:
        run.communicate()
