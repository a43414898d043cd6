"""What a worker whose rows lie in a database can reach: its relay, the library's files, and nothing else new."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import sulq
from sulq.service.clerk.registration import declare
from sulq.service.sandbox import file_rules, isolation, launcher
from sulq.service.supervisor import process
from tests.service.service import COLUMNS, connections, found_by_children, need_network, networks, survey
from tests.service.worker.test_pg_proxy import echo

REFUSED = "PermissionError"


@pytest.fixture
def places() -> Iterator[list[int]]:
    """The ports of two servers of this machine that give back what they hear."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    for listener in listeners:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
    yield [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def pried(folder: Path, data: object, ports: list[int], monkeypatch: pytest.MonkeyPatch) -> dict:
    """What a worker of such data says of itself, confined as the shipped one is."""
    (folder / "pass").write_text("*:*:*:*:s3cret")
    (folder / "pass").chmod(0o600)
    (folder / "other").write_text("")
    monkeypatch.setenv("PGPASSFILE", str(folder / "pass"))
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    monkeypatch.setenv("SULQ_TOKEN", "t0ken")
    declared = declare("survey", data, COLUMNS, budget=sulq.Epsilon(9), ledger=folder / "survey.ledger")
    settings = {
        "dataset": declared.for_worker().to_json(), "outside": isolation.network(),
        "places": [[f"127.0.0.{i}", port] for i in (1, 2) for port in ports],
        "tries": [str(folder / name) for name in ("pass", "other")],
    }  # fmt: skip
    with found_by_children("tests.service.prying_sockets"):
        child = process.launched("worker", settings, (), folder / "spill", stdout=subprocess.PIPE)
        said = json.loads(child.stdout.read())
        child.wait(60)
        child.stdin.close()
        child.stdout.close()
    return said


def test_a_worker_of_a_database_reaches_that_database_alone_T69_T72(
    tmp_path: Path, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By TCP, at its own port; no other server of the machine, no other kind of socket, no program, no other file.

    Control: a worker of a file has no socket at all, sees no passfile and no password; this process reaches both
    servers.
    """
    found = pried(tmp_path, f"postgresql://ann@127.0.0.1:{places[0]}/base", places, monkeypatch)
    there = networks()
    assert ("relay" in found["network"]) is there
    need_network(there=there)
    assert found["network"] in ("namespace+seccomp+relay", "namespace+relay")
    assert found["echoed"] == ["ping", "", "", ""]
    if "seccomp" in found["network"]:
        assert found["sockets"].pop("tcp") == "done"
        assert found["sockets"] == dict.fromkeys(found["sockets"], REFUSED)
        assert (found["listens"], found["program"]) == (REFUSED, REFUSED)
    if launcher.landlock():
        assert found["files"] == "own"
        assert list(found["opens"].values()) == ["done", REFUSED]
    assert {"PGPASSWORD", "PGPASSFILE"} <= set(found["environment"])
    assert "SULQ_TOKEN" not in found["environment"]
    for port in places:
        with socket.create_connection(("127.0.0.1", port), 30) as sock:
            sock.sendall(b"ping")
            assert sock.recv(4) == b"ping"


def test_a_worker_of_a_file_gains_nothing_T72(
    tmp_path: Path, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No socket of any kind, no passfile, no password: what tables in a database need is theirs alone."""
    found = pried(tmp_path, survey(tmp_path / "survey.parquet"), places, monkeypatch)
    assert "relay" not in found["network"]
    assert found["echoed"] == [""] * 4 or found["network"] == "open"
    assert not {"PGPASSWORD", "PGPASSFILE", "HOME", launcher.RELAY} & set(found["environment"])
    if "seccomp" in found["network"]:
        assert set(found["sockets"].values()) == {REFUSED}
    if launcher.landlock():
        assert list(found["opens"].values()) == [REFUSED, REFUSED]


def test_without_a_network_of_its_own_a_worker_gets_no_socket_T72(
    tmp_path: Path, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel gives out none, there is no relay either, and the filter is the strict one."""
    usual = process.file_rules.of

    def in_this_network(*told: object) -> object:
        allowed = usual(*told)
        allowed["network"] = True
        return allowed

    monkeypatch.setattr(process.file_rules, "of", in_this_network)
    found = pried(tmp_path, f"postgresql://ann@127.0.0.1:{places[0]}/base", places, monkeypatch)
    assert "relay" not in found["network"]
    if "seccomp" in found["network"]:
        assert set(found["sockets"].values()) == {REFUSED}
        assert found["echoed"] == [""] * 4


def test_each_host_of_an_address_has_its_own_place(
    tmp_path: Path, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two hosts the second is found at the second place, at its own port, and not at the first's."""
    url = f"postgresql://ann@127.0.0.1:{places[0]},localhost:{places[1]}/base"
    found = pried(tmp_path, url, places, monkeypatch)
    need_network(there=networks())
    assert found["echoed"] == ["ping", "", "", "ping"]


def test_a_relay_connects_to_the_ports_of_its_database_and_of_names_alone(places: list[int]) -> None:
    """Whatever it is made to do; control: one whose address names both ports reaches both."""
    if launcher.landlock() < 4:
        pytest.skip("this kernel's Landlock knows no ports")
    found = {}
    for hosts in (f"127.0.0.1:{places[0]}", f"127.0.0.1:{places[0]},localhost:{places[1]}"):
        declared = declare("survey", f"postgresql://ann@{hosts}/base", COLUMNS, budget=sulq.Epsilon(9), table="t")
        told = file_rules.of("worker", {"dataset": declared.for_worker().to_json()}, None)["relay"]["lines"][0]
        assert file_rules.DNS in told["connect"]
        found[hosts] = connections(told, places)
    assert list(found.values()) == [[True, False], [True, True]]
