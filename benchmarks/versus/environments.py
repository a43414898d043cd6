"""The contenders' own environments: one folder each under $SULQ_PEERS_HOME, from exact versions, made when missing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "environments"
WORDS = 300  # of pip's reason


class Missing(Exception):
    """An environment that cannot be made on this machine, with pip's reason."""


def home() -> Path:
    """Where environments lie."""
    return Path(os.environ.get("SULQ_PEERS_HOME") or ROOT / ".build" / "peers").absolute()


def python(name: str) -> Path:
    """The Python of an environment, made if it is missing or its file has changed; "main" is the one running here."""
    if name == "main":
        return Path(sys.executable)
    wanted = FILES / f"{name}.txt"
    folder = home() / name
    found, mark = folder / "bin" / "python", folder / "made-from"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text(encoding="ascii") == digest:
        return found
    print(f"making the environment of {name} in {folder}", flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(folder)], check=False, capture_output=True, text=True
    )
    if made.returncode == 0:
        words = [str(found), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)]
        made = subprocess.run(words, check=False, capture_output=True, text=True)
    if made.returncode:
        errors = [line for line in made.stderr.splitlines() if "ERROR" in line] or made.stderr.splitlines()[-1:]
        raise Missing(" ".join(errors)[:WORDS])
    mark.write_text(digest, encoding="ascii")
    return found
