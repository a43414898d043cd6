"""What a worker gives up: tried in processes of their own, with a process that kept it all as the control."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.service.sandbox import file_rules, isolation, launcher
from tests.service.service import connections, need_network

SOURCE = str(Path(isolation.__file__).parents[3])
TRIES = """
import ctypes, json, os, resource, signal, socket, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
from sulq.service.sandbox import isolation
victim, data, other, spill = int(sys.argv[4]), *sys.argv[5:8]
started, go, found = threading.Event(), threading.Event(), []

def in_thread():
    started.set(); go.wait()
    try:
        socket.socket(socket.AF_UNIX).close(); found.append("open")
    except PermissionError:
        found.append("refused")

thread = threading.Thread(target=in_thread); thread.start(); started.wait()
if sys.argv[2] == "confined":
    said = isolation.confine(2 << 30, 64, outside=int(sys.argv[3]), written=1 << 20)
else:
    said = {}
go.set(); thread.join()

def tried(work):
    try:
        work()
    except (OSError, MemoryError, RuntimeError) as error:
        return type(error).__name__
    return "done"

libc = ctypes.CDLL(None, use_errno=True)
def called(*args):
    ctypes.set_errno(0)
    result = libc.syscall(*args)
    if result < 0 and ctypes.get_errno() == 1: raise PermissionError
    if result < 0: raise OSError

def forked():
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)

def memory_of_another():
    place = int(next(line for line in open(f"/proc/{victim}/maps") if "[heap]" in line).split("-")[0], 16)
    with open(f"/proc/{victim}/mem", "rb", 0) as file:
        file.seek(place); file.read(16)

def owned(pid):
    import fcntl
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, pid)

def ran_thread():
    ran = []
    thread = threading.Thread(target=lambda: ran.append(1)); thread.start(); thread.join()
    if not ran: raise OSError

def written(path, size):
    with open(path, "wb") as file: file.write(bytes(size))

def removed(path):
    written(path, 1); os.unlink(path)

clone3 = libc.syscall(435, None, 0) if sys.argv[2] == "confined" else -1
clone3 = ctypes.get_errno() if clone3 < 0 else 0
routes = open("/proc/net/route").read().splitlines()[1:]
print(json.dumps({
    "said": said, "thread": found[0], "routes": len(routes), "clone3": clone3,
    "inet": tried(lambda: socket.socket().close()), "unix": tried(lambda: socket.socket(socket.AF_UNIX).close()),
    "program": tried(lambda: subprocess.run(["true"], check=True)), "fork": tried(forked),
    "io_uring": tried(lambda: called(425, 4, None)),
    "ptrace": tried(lambda: called(101, 0x4206, victim, 0, 0)),  # PTRACE_SEIZE; ends with this process
    "peek": tried(memory_of_another), "environ": tried(lambda: open(f"/proc/{victim}/environ").read()),
    "kill": tried(lambda: os.kill(victim, 0)), "kill group": tried(lambda: os.kill(-os.getpgid(victim), 0)),
    "tgkill": tried(lambda: called(234, victim, victim, 0)),
    "queue": tried(lambda: called(129, victim, 0, ctypes.create_string_buffer(b"\\0" * 8 + b"\\xff" * 4, 128))),
    "pidfd": tried(lambda: os.close(os.pidfd_open(victim))), "owner": tried(lambda: owned(victim)),
    "limits": tried(lambda: resource.prlimit(victim, resource.RLIMIT_CPU)),
    "own kill": tried(lambda: os.kill(os.getpid(), 0)),
    "own limits": tried(lambda: resource.getrlimit(resource.RLIMIT_CPU)),
    "own thread": tried(ran_thread),
    "data": tried(lambda: open(data).read()), "data written": tried(lambda: open(data, "a")),
    "other": tried(lambda: open(other).read()), "other written": tried(lambda: open(other, "a")),
    "spilled": tried(lambda: removed(spill + "/file")), "too much": tried(lambda: written(spill + "/big", 2 << 20)),
    "listed": tried(lambda: os.listdir("/")), "beside": tried(lambda: written(data + ".new", 1)),
    "capabilities": open("/proc/self/status").read().split("CapEff:")[1].split()[0].strip("0"),
    "bounding": open("/proc/self/status").read().split("CapBnd:")[1].split()[0].strip("0"),
    "memory": tried(lambda: bytearray(3 << 30)), "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
    "files": tried(lambda: [open("/dev/null") for _ in range(200)]),
    "dumpable": libc.prctl(3, 0, 0, 0, 0), "privileges": libc.prctl(39, 0, 0, 0, 0),
    "pair": tried(lambda: [s.close() for s in socket.socketpair()]),
}))
"""
PROGRAMS = ("inet", "unix", "program", "fork", "io_uring", "ptrace")
OTHERS = ("kill", "kill group", "tgkill", "queue", "pidfd", "owner", "limits")
MEMORY = ("peek", "environ")
OWN = ("own kill", "own limits", "own thread", "pair")


@pytest.fixture
def victim() -> Iterator[int]:
    """Another process of the same user."""
    program = "import time; print('there', flush=True); time.sleep(3600)"
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def tried(how: str, folder: Path, victim: int, *, kept_apart: bool) -> dict:
    data, other, spill = folder / "data", folder / "other", folder / "spill"
    for file in (data, other):
        file.write_text("rows")
    spill.mkdir(exist_ok=True)
    command = [
        sys.executable, "-P", "-c", TRIES, SOURCE, how, str(isolation.network()), str(victim), str(data), str(other),
        str(spill),
    ]  # fmt: skip
    line = ""
    if kept_apart:
        command = [sys.executable, "-P", launcher.__file__, *command]
        read = [*file_rules.SYSTEM, *file_rules.program(), SOURCE, str(data)]
        line = json.dumps(
            {"network": False, "read": read, "write": [str(spill), "/dev/null"], "closed": [str(other), "/"]}
        )
    done = subprocess.run(command, input=line + "\n", capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def test_a_confined_process_reaches_no_network_program_or_other_process_T69_T72(tmp_path: Path, victim: int) -> None:
    """Sockets, programs, new processes, tracing, signals to others, large memory and many files are refused.

    So they are in threads that ran before; threads, and signals to itself, are not refused.

    Control: the same tries in a process that gave up nothing succeed, on the same victim.
    """
    found = tried("confined", tmp_path, victim, kept_apart=True)
    if not found["said"]["seccomp"]:
        pytest.skip("this kernel installs no filter of system calls")
    assert "seccomp" in found["said"]["network"]
    for name in (*PROGRAMS, *OTHERS):
        assert found[name] == "PermissionError", name
    assert found["clone3"] == 38
    assert found["thread"] == "refused"
    assert found["memory"] == "MemoryError"
    assert found["files"] == "OSError"
    assert found["too much"] == "OSError"
    assert (found["core"], found["dumpable"], found["privileges"]) == (0, 0, 1)
    assert [found[name] for name in OWN] == ["done"] * len(OWN)
    free = tried("free", tmp_path, victim, kept_apart=False)
    again = [name for name in (*PROGRAMS, *OTHERS, *OWN, "memory", "files", "too much") if name != "io_uring"]
    assert {name: free[name] for name in again} == dict.fromkeys(again, "done")
    assert free["thread"] == "open"


def test_a_process_kept_apart_opens_its_own_files_alone_T69(tmp_path: Path, victim: int) -> None:
    """It reads its data and changes its folder; no other file opens, no other process, and no special right is left.

    Control: a process that gave up nothing does all of it.
    """
    found = tried("confined", tmp_path, victim, kept_apart=True)
    if found["said"]["files"] == "shared":
        pytest.skip("this kernel has no Landlock")
    assert (found["data"], found["spilled"]) == ("done", "done")
    for name in ("data written", "other", "other written", "listed", "beside", *MEMORY):
        assert found[name] == "PermissionError", name
    assert (found["capabilities"], found["bounding"]) == ("", "") or found["said"]["rights"] == "some"
    free = tried("free", tmp_path, victim, kept_apart=False)
    for name in ("data", "data written", "other", "other written", "listed", "beside", "spilled", *MEMORY):
        assert free[name] == "done", name


def test_a_network_of_its_own_has_no_way_out_T72(tmp_path: Path, victim: int) -> None:
    """Started through the first step a process is in another network, without a route; or it says that it is not."""
    found = tried("confined", tmp_path, victim, kept_apart=True)
    need_network(there=found["said"]["namespace"])
    assert found["routes"] == 0
    without = tried("confined", tmp_path, victim, kept_apart=False)
    assert not without["said"]["namespace"]
    assert without["said"]["files"] == "shared"
    assert without["other"] == "done", "and what it says of its files is so"


def test_a_process_that_could_open_what_it_must_not_says_so(tmp_path: Path) -> None:
    """Where a file that must be closed lies in a folder that may be read, the files are called shared."""
    secret = tmp_path / "ledger"
    secret.write_text("")
    found = f"import sys; sys.path.insert(0, {SOURCE!r}); from sulq.service.sandbox import isolation"
    shown = f"{found}; print(isolation.files())"
    said = []
    for read in ([], [str(tmp_path)]):
        line = json.dumps(
            {"read": [*file_rules.SYSTEM, *file_rules.program(), SOURCE, *read], "write": [], "closed": [str(secret)]}
        )
        command = [sys.executable, "-P", launcher.__file__, sys.executable, "-P", "-c", shown]
        done = subprocess.run(command, input=line + "\n", capture_output=True, text=True, check=True, timeout=300)
        said.append(done.stdout.strip())
    assert said == (["own", "shared"] if launcher.landlock() else ["shared", "shared"])


def test_connections_to_other_ports_are_refused_T72() -> None:
    """A process that may connect to one port connects to no other; control: one that may make connections does."""
    if launcher.landlock() < 4:
        pytest.skip("this kernel's Landlock knows no ports")
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    found = [
        connections({"read": [*file_rules.SYSTEM, *file_rules.program()], "write": [], **more}, ports)
        for more in ({"connect": ports[:1]}, {"tcp": True}, {})
    ]
    for listener in listeners:
        listener.close()
    assert found == [[True, False], [True, True], [False, False]]


def test_the_filter_names_the_machine_and_lets_the_rest_pass() -> None:
    """The program is eight bytes a step: another machine's calls are refused first, the last step allows."""
    code = isolation.program(7, [1, 2])
    steps = [code[i : i + 8] for i in range(0, len(code), 8)]
    assert len(steps) == 6 + 2 * 2 + 1
    assert steps[-1][4:] == isolation.ALLOW.to_bytes(4, sys.byteorder)
    assert steps[1][4:] == (7).to_bytes(4, sys.byteorder)


@pytest.mark.parametrize("machine", sorted(isolation._CALLS))
def test_every_machine_refuses_the_same(machine: str) -> None:
    """The lists differ by what a machine has no call for, and by nothing else; no call is in both lists."""
    _, _, refused, partly = isolation._CALLS[machine]
    _, _, whole, parts = isolation._CALLS["x86_64"]
    assert set(whole) - set(refused) <= {"fork", "vfork"}
    assert set(refused) <= set(whole)
    assert partly.keys() == parts.keys()
    assert not set(refused.values()) & set(partly.values())
