"""The demo's second act, started as a process and ended as its reader would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

import sulq

ROOT = Path(__file__).resolve().parents[2]
SMALL = """import sys, sulq.cli.demo
sulq.cli.demo.PEOPLE = 2000
sys.argv = ["sulq", "demo"]
sulq.cli.main()"""


def test_the_demo_opens_the_console_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    """After the story it prints the address and where tokens of an owner and two analysts lie, and ends when told."""
    environment = {k: v for k, v in os.environ.items() if k != "DEMO_ONCE"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path), "COLUMNS": "200"}
    story = tmp_path / "story.txt"
    with story.open("wb") as out:
        running = subprocess.Popen([sys.executable, "-c", SMALL], stdout=out, stderr=out, env=environment)
    try:
        for _ in range(600):
            text = story.read_text(encoding="utf-8")
            if "Ctrl-C ends it" in text or running.poll() is not None:
                break
            time.sleep(0.2)
        assert "Ctrl-C ends it" in text, text
        url = re.search(r"is open: (http://127\.0\.0\.1:\d+)", text)[1]
        place = Path(re.search(r"tokens:\s+(\S+)", text)[1])
        assert place.stat().st_mode & 0o777 == 0o600
        assert "sulq_" not in text, "what is no terminal may be a log"
        tokens = dict(line.split() for line in place.read_text(encoding="utf-8").splitlines())
        assert {"owner", "alice", "bob", "auditor"} == set(tokens)
        assert "sign in" in httpx.get(f"{url}/sign-in", trust_env=False).text.lower()
        with sulq.connect(f"{url}/survey", token=tokens["alice"]) as far:
            answer = far.sql("SELECT COUNT(*) FROM survey", spend=sulq.Epsilon(0.1))
        assert answer.spent == sulq.Epsilon(0.1)
        assert '"event"' not in text, "the server's log belongs in its file"
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
    assert "The console is closed." in story.read_text(encoding="utf-8")
