"""`sulq serve`: what it refuses to start as, and the whole of it from the first token to Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sulq
from sulq.cli import app, serve
from sulq.cli.config import read
from sulq.cli.demo import survey
from sulq.cli.serve import declaration, settled
from sulq.errors import AccessDenied, SetupError
from sulq.service.settings import Service

CONFIG = """
[dataset.visits]
data = "people.parquet"
unit = { column = "respondent", rows = 4 }
budget = { epsilon = 2.0 }
shares = { alice = { share = 0.5 } }
[dataset.visits.columns]
age = { int = [0, 110] }
city = { category = ["Haifa", "Lod"] }
[server]
port = 0
workers = 1
"""


def server(host: str = "127.0.0.1", port: int = 8765, **more: object) -> Service:
    return Service(Path("sulq.state"), host, port, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(survey(200, np.random.default_rng(1)), tmp_path / "people.parquet")
    (tmp_path / "sulq.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_a_public_address_needs_tls_or_the_owners_word_T86(tmp_path: Path) -> None:
    """Loopback is free; anything else needs a certificate that is there, or --insecure-public."""
    for host in ("127.0.0.1", "localhost", "::1"):
        assert settled(server(host), None, None, insecure_public=False).host == host
    for host in ("192.168.1.5", "curator.example.org"):
        with pytest.raises(SetupError) as caught:
            settled(server(host), None, None, insecure_public=False)
        assert caught.value.code == "public-address"
        with pytest.raises(SetupError):
            settled(server(), host, None, insecure_public=False)
        assert settled(server(host), None, None, insecure_public=True).host == host
        assert settled(server(host, insecure_public=True), None, None, insecure_public=False).host == host
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    with pytest.raises(SetupError) as caught:
        settled(server("10.0.0.1", tls_cert=cert, tls_key=key), None, None, insecure_public=False)
    assert caught.value.code == "missing-file"
    cert.touch()
    key.touch()
    assert settled(server("10.0.0.1", tls_cert=cert, tls_key=key), None, None, insecure_public=False).tls_cert == cert


def test_traces_need_their_extra_and_a_collector_on_this_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the packages the server does not start, and says which; a collector elsewhere is refused."""
    place = folder / "sulq.toml"
    place.write_text(f'{CONFIG}traces = "http://127.0.0.1:4318/v1/traces"\n', encoding="utf-8")
    told = read(place).server
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")
    assert settled(told, None, None, insecure_public=False).traces == "http://127.0.0.1:4318/v1/traces"
    monkeypatch.setattr(serve, "find_spec", lambda _: None)
    with pytest.raises(SetupError) as caught:
        settled(told, None, None, insecure_public=False)
    assert caught.value.code == "missing-extra"
    for elsewhere in ("http://collector:4318", "https://127.0.0.1:4318", "http://127.0.0.1", "http://127.0.0.1@b:1/"):
        place.write_text(f'{CONFIG}traces = "{elsewhere}"\n', encoding="utf-8")
        with pytest.raises(SetupError) as caught:
            read(place)
        assert caught.value.code == "bad-config"


def test_every_address_needs_a_name_T86() -> None:
    """A server on all addresses of its machine must be told what it goes by; else any name would have to do."""
    for host in ("0.0.0.0", "::"):
        with pytest.raises(SetupError) as caught:
            settled(server(), host, None, insecure_public=False)
        assert caught.value.code == "public-address"
        with pytest.raises(SetupError) as caught:
            settled(server(), host, None, insecure_public=True)
        assert caught.value.code == "bad-config"
        for named in (server(hosts=("curator.example",)), server(public_url="https://curator.example")):
            made = settled(named, host, None, insecure_public=True)
            assert made.public_url == named.public_url


def test_the_command_line_comes_before_the_file() -> None:
    """--host and --port replace what the file says; a port that is none is refused."""
    made = settled(server(port=1), "::1", 2, insecure_public=False)
    assert (made.host, made.port) == ("::1", 2)
    with pytest.raises(SetupError):
        settled(server(), None, 70_000, insecure_public=False)


def test_settings_and_declarations_reach_the_server_whole(folder: Path) -> None:
    """Every field of the server's settings is carried over, and comes back from the pipe as it was."""
    found = read(folder / "sulq.toml")
    service = replace(
        found.server, workers=3, limit=5.0, memory=512, web=2, share_answers=True, rate=7, schedule=1.0, hosts=("a",),
        data_root=folder, ledgers=folder / "books", jobs=2, job_limit=60.0, job_memory=1500,
    )  # fmt: skip
    assert Service.from_json(service.to_json()) == service
    declared = declaration(found.datasets["visits"])
    assert declared.name == "visits"
    assert declared.shares == {"alice": (0.5, 0.0)}
    assert declared.tables[0].facts.schema.table == "visits"
    with pytest.raises(SetupError):
        declaration(replace(found.datasets["visits"], data="http://elsewhere/visits"))


def test_a_url_is_asked_with_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without $SULQ_TOKEN the command says so; what needs the data itself is refused for a URL."""
    monkeypatch.delenv("SULQ_TOKEN", raising=False)
    for words in (["query", "SELECT 1", "--epsilon", "1"], ["explain", "SELECT 1"], ["budget"]):
        found = CliRunner().invoke(app, [words[0], "http://127.0.0.1:1/visits", *words[1:]])
        assert isinstance(found.exception, AccessDenied)
        assert found.exception.code == "unauthorized"
    found = CliRunner().invoke(app, ["prepare", "http://127.0.0.1:1/visits"])
    assert isinstance(found.exception, SetupError)
    monkeypatch.setenv("SULQ_TOKEN", "t")
    found = CliRunner().invoke(app, ["budget", "http://127.0.0.1:1/visits", "--raise-to", "3"])
    assert isinstance(found.exception, SetupError)


class Running:
    """`sulq serve` in a process of its own."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder = folder
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from sulq.cli import main; main()", "serve"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"NO_COLOR": "1"} | more,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self.said.append(line)

    def token(self) -> str:
        """The first owner's token, from the file that is named."""
        place = Path(self.until(r"(?<=:\n)  \S+owner\.token(?=\n)").strip())
        assert place.stat().st_mode & 0o777 == 0o600
        return place.read_text(encoding="utf-8").split()[1]

    def until(self, pattern: str) -> str:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            found = re.search(pattern, "".join(self.said))
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError("".join(self.said))

    def stop(self, number: int = signal.SIGINT) -> int:
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(60)
        self._reader.join(10)
        self._process.stdout.close()
        return code


@pytest.fixture
def running(folder: Path) -> Iterator[Running]:
    made = Running(folder)
    yield made
    made.stop()


def command(folder: Path, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from sulq.cli import main; main()", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "200", "SULQ_TOKEN": token},
    )


def test_no_stream_of_the_server_shows_a_token_T104(folder: Path) -> None:
    """Both streams into a pipe, as a log collector has them, even where colours are forced: a path, and no token."""
    running = Running(folder, FORCE_COLOR="1", NO_COLOR="", TTY_COMPATIBLE="1")
    try:
        running.until("sulq serves")
        store = folder / "sulq.state" / "owner.token"
        token = store.read_text(encoding="utf-8").split()[1]
        assert store.stat().st_mode & 0o777 == 0o600
    finally:
        running.stop()
    everything = "".join(running.said)
    assert "owner.token" in everything
    assert token.startswith("sulq_")
    assert "sulq_" not in everything


def test_from_the_first_token_to_the_end(running: Running, folder: Path) -> None:
    """The owner's token is given once; an analyst is let in, asks from Python and the command line, and is ended."""
    owner = running.token()
    url = running.until(r"http://127\.0\.0\.1:\d+")
    running.until("a dataset is ready")
    alice = command(folder, "analyst", "add", "alice", "--dataset", "visits").stdout.strip()
    with sulq.connect(f"{url}/visits", token=alice) as far:
        answer = far.count(spend=sulq.Epsilon(0.5))
        assert answer.accuracy(0.05) > 0
        assert far.remaining == sulq.Epsilon(0.5), "half of the budget is her share"
        sql = "SELECT COUNT(*) FROM visits WHERE age > 30"
        shown = command(folder, "query", f"{url}/visits", sql, "--epsilon", "0.25", token=alice)
        assert shown.returncode == 0, shown.stderr
        assert "spent epsilon 0.25" in shown.stdout
        explained = command(folder, "explain", f"{url}/visits", "SELECT COUNT(*) FROM visits", token=alice)
        assert "price" in explained.stdout
        assert "epsilon 0.25" in command(folder, "budget", f"{url}/visits", token=alice).stdout
        refused = command(
            folder, "query", f"{url}/visits", "SELECT COUNT(*) FROM visits WHERE age > 1", "--epsilon", "1", token=alice
        )
        assert refused.returncode == 3
        assert command(folder, "analyst", "revoke", "alice").returncode == 0
        with pytest.raises(AccessDenied):
            far.count(spend=sulq.Epsilon(0.1))
    with sulq.connect(f"{url}/visits", token=owner) as far:
        assert [line["analyst"] for line in far.transcript()] == ["alice", "alice"]
    assert running.stop() == 0
    everything = "".join(running.said)
    assert alice not in everything
    assert owner not in everything
    assert "Traceback" not in everything
    assert "Fatal" not in everything
    again = Running(folder)
    again.until("a dataset is ready")
    assert again.stop(signal.SIGTERM) == 0
    assert "sulq_" not in "".join(again.said), "a second start shows no token"
