"""No text gets out: over 300 of them through every door, the process watched by Python, the kernel and a listener."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.counts import count
from tests.curator.ledger.cases import memory_folder
from tests.escapes import CANARY, Outside, statements, texts

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 0x00000FFF  # every inotify event: opened, read, listed, written, made, removed
TRACE = ("strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=%file,%network,execve,execveat", "-o")
# Where an engine and the C library look, whatever is asked of them: the machine's size and its time zone.
ALLOWED = (
    "/proc/meminfo", "/proc/self/cgroup", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
    "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo",
)  # fmt: skip


@dataclass
class Watch:
    """What was seen of a process: before and after the end of its doors."""

    record: dict[str, object] = field(default_factory=dict)
    touched: tuple[list[str], list[str]] = ((), ())  # files and folders outside, by inotify
    called: tuple[int, int] = (0, 0)  # connections to the listener
    traced: tuple[list[str], list[str]] | None = None  # system calls outside the data mount, by strace


class Notify:
    """Every event in some folders, in order, whoever causes it."""

    def __init__(self, *folders: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders = {self._libc.inotify_add_watch(self._file, bytes(path), EVENTS): path for path in folders}
        if self._file < 0 or min(self._folders) < 0:
            pytest.skip("no inotify here")

    def seen(self) -> list[Path]:
        """The paths touched since the last look."""
        found: list[Path] = []
        while True:
            try:
                data = os.read(self._file, 1 << 20)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                watch, _, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode()
                found.append(self._folders.get(watch, Path("overflow")) / name)
                at += 16 + size

    def close(self) -> None:
        os.close(self._file)


@contextmanager
def listener(end: Path) -> Iterator[tuple[str, list[bool]]]:
    """An address that notes each connection, and whether it came after the end."""
    calls: list[bool] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                calls.append(end.exists())
                peer.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", calls
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def tracer(log: Path) -> list[str]:
    """How to run a process under a trace of its system calls; nothing where that is not possible."""
    if shutil.which(TRACE[0]) is None:
        return []
    ran = subprocess.run([*TRACE, str(log), "true"], capture_output=True, check=False)
    return [*TRACE, str(log)] if ran.returncode == 0 else []


def outside_calls(log: Path, mount: Path) -> tuple[list[str], list[str]]:
    """System calls that name a place outside the mount and the program's own files, before and after the end."""
    own = (str(mount), sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix), str(ROOT), *ALLOWED)
    above = {str(folder) for place in own for folder in Path(place).parents}  # looked at on the way to one's own
    found: tuple[list[str], list[str]] = ([], [])
    began, ended = False, False
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        began = began or f'{mount}/signs/begin"' in line
        ended = ended or f'{mount}/signs/end"' in line
        match = re.match(r"\d+\s+(\w+)\((.*)", line)
        if not began or match is None:
            continue
        call, rest = match.groups()
        names = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)[:2]
        by_number = not names or names == [""]  # a call about an open file names none
        network = re.match(r"socket|connect|send|recv|bind|getpeer|getsock|accept|listen", call)
        if network or not (by_number or all(name.startswith(own) or name in above for name in names)):
            found[ended].append(line)
    return found


def watched(number: int, *escape: str) -> Watch:
    """Run the doors in a process of its own, with its home and working folder outside the data mount."""
    seen = Watch()
    with memory_folder() as shared, tempfile.TemporaryDirectory() as away:
        mount, home, log = Path(shared).resolve() / "mount", Path(away).resolve(), Path(shared) / "trace"
        signs = mount / "signs"
        for folder in (mount, signs, mount / "tmp"):
            folder.mkdir()
        secret = home / "secret.csv"
        secret.write_text(f"a,b\n{CANARY},1\n", encoding="utf-8")
        trace = tracer(log)
        notify = Notify(home, signs)
        with listener(signs / "end") as (url, calls):
            ran = subprocess.run(
                [*trace, sys.executable, "-P", "-m", "tests.privacy.doors", mount, secret, url, str(number), *escape],
                cwd=home,
                env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(mount / "tmp"),
                     "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr[-2000:]
        seen.record = json.loads(ran.stdout)
        paths = notify.seen()
        notify.close()
        assert Path("overflow") not in paths
        first, last = paths.index(signs / "begin"), paths.index(signs / "end")
        seen.touched = tuple([str(path) for path in part if home in (path, *path.parents)]
                             for part in (paths[first:last], paths[last:]))  # fmt: skip
        seen.called = (calls.count(False), calls.count(True))
        seen.traced = outside_calls(log, mount) if trace else None
        assert sorted(path.name for path in home.iterdir()) == ["secret.csv"]
        assert secret.read_text(encoding="utf-8") == f"a,b\n{CANARY},1\n"
    return seen


def test_the_texts_are_many_and_different() -> None:
    """At least 300 whole statements, and more for names and literals; none twice."""
    outside = Outside("/away/secret.csv", "/away", "http://127.0.0.1:1")
    assert len(set(statements(outside))) == len(statements(outside)) >= 300
    assert len(set(texts(outside))) == len(texts(outside)) == LONG
    words = {text.split()[0].upper() for text in statements(outside)}
    assert len(words) >= 60  # not one statement in many coats


LONG = 726


@pytest.mark.audit
def test_no_text_gets_out_T69_T70_T72_T73() -> None:
    """Each text is refused with a code for nothing or answered as data; no file, address or process is touched.

    Bar: 0 calls outside the data mount for 643 statements and as many names and literals.
    Control: test_whoever_gets_out_is_seen_T69.
    """
    seen = watched(count("texts through every door", short=100, long=LONG))
    assert seen.record["faults"] == []
    assert seen.record["strays"] == []
    assert seen.touched[0] == []
    assert seen.called == (0, 0)
    assert seen.traced is None or seen.traced[0][:5] == []
    said = seen.record["said"]
    assert said["sql: answered"] < 12  # aliases and comments that hold a text, never the text itself
    assert sum(number for door, number in said.items() if door.startswith("sql: ")) == seen.record["statements"] >= 300
    assert said["literal: answered"] > 0.9 * seen.record["texts"]


def test_whoever_gets_out_is_seen_T69() -> None:
    """Control: an unlocked engine, a file opened and an address called show in every watch."""
    seen = watched(0, "escape")
    assert any(line.startswith("open ") for line in seen.record["escaped"])
    assert any(line.startswith("socket.connect") for line in seen.record["escaped"])
    assert any(path.endswith("secret.csv") for path in seen.touched[1])
    assert seen.called[1] >= 1
    if seen.traced is not None:
        text = "\n".join(seen.traced[1])
        assert text.count("secret.csv") >= 2  # DuckDB's own, which Python does not see, and Python's
        assert "connect(" in text
