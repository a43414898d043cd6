"""Which files a process of the server may open, where the kernel can see to it (Landlock).

    web      the program, and the server's certificate; neither data, ledgers nor the access store; the port of a
             collector of traces, where there is one
    jobs     the program, and no network; its children, which run one job each, likewise and with limits
    clerk    the program; the folders of the ledgers, of their anchors and of the server's state; names below data_root
    worker   the program and its data, read-only; names in the folders of a pattern, to notice a part that comes; the
             folder of its prepared copy, and the one it spills to; where its tables lie in a database, what
             PostgreSQL's own library looks for, and a proxy to it
    proxy    the program, and how names are found; the ports of the database, and of names
    look     the program and the one file it looks at; the folder it spills to
    check    the program and the data it counts in; the folder it spills to

A ledger needs its whole folder: SQLite puts a journal beside it, and a new ledger
is written under another name first. The kernel knows no rule for a folder without
one of its files, so a clerk whose ledgers lie beside the data or its copy could open
those, and says so (`shared`). One that was told of a ledger in PostgreSQL may make TCP
connections, and read what PostgreSQL's own library looks for; and a worker whose tables
lie in the same database could come to that ledger.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from sulq.data_files import Files
from sulq.service.clerk.registration import RegisteredStore
from sulq.service.sandbox import launcher
from sulq.service.settings import DatasetSettings, data_of, files_of
from sulq.service.worker import database

Told = Mapping[str, object]
# What programs need of a system: libraries, clocks, certificates, and what they may know of the machine.
SYSTEM: Final = (
    "/usr", "/lib", "/lib64", "/bin",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/ssl", "/etc/pki",
    "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/mime.types", "/etc/os-release",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/proc/sys/kernel",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
WRITABLE: Final = ("/dev/null",)
# How names of hosts are found: by a library that also looks who it runs as, or alone.
NAMES: Final = ("/etc", "/run/systemd/resolve", "/run/NetworkManager")
HOSTS: Final = ("/etc/host.conf", "/etc/gai.conf", "/etc/services", *NAMES[1:])
DNS: Final = 53  # a long answer comes by TCP
KEPT: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
"""What is passed on of the environment to processes that are told nothing by it but what they need."""


def sandboxed(command: Sequence[str]) -> list[str]:
    """A command that the launcher takes over to, once it has given up what it is told."""
    return [sys.executable, "-P", str(Path(launcher.__file__)), *command]


def program() -> list[str]:
    """The interpreter, and wherever it finds its modules."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, str(Path(sys.executable).resolve())}
    places |= {*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[3])}
    places |= {place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place}
    places |= {place for place in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if place}
    return sorted(place for place in places if place != os.sep)


def of(part: str, settings: Told, folder: Path | None) -> dict[str, object] | None:
    """The launcher's rules for a part; None for one that is not sandboxed."""
    read, write = [*SYSTEM, *program()], [*WRITABLE, *([] if folder is None else [str(folder)])]
    closed: list[str] = [os.sep]
    if part == "web":
        service = cast("Told", settings["service"])
        read += [str(service[name]) for name in ("tls_cert", "tls_key") if service.get(name) is not None]
        ports = [] if service.get("traces") is None else [urlsplit(str(service["traces"])).port]
        return {"read": read, "write": write, "closed": closed + _there([str(service["state"])]), "connect": ports}
    if part == "jobs":
        state = str(cast("Told", settings["service"])["state"])
        own = "/proc/self/autogroup"  # how much weight its session has
        return {"network": False, "read": read, "write": [*write, own], "closed": closed + _there([state])}
    if part == "clerk":
        reached = _ledgers(cast("Told", settings["service"]), cast("list[Told]", settings["datasets"]))
        more = {"read": read + reached["read"], "write": write + reached["write"], "list": reached["list"]}
        return {**more, "tcp": bool(reached["read"]), "closed": closed + _there(reached["closed"])}
    if part == "look":
        return {"network": False, "read": [*read, str(settings["path"])], "write": write, "closed": closed}
    if part in ("check", "worker"):
        dataset = cast("Told", settings["dataset"])
        tables = cast("list[Told]", dataset["tables"])
        data = [data_of(table["data"]) for table in tables]
        read += [str(path) for each in data for path in files_of(each)]
        read += [f"{path}.wal" for path in data if isinstance(path, Path)]  # a DuckDB file's last changes
        listed = sorted({str(folder) for each in data if isinstance(each, Files) for folder in each.listed})
        if part == "worker" and dataset["prepared"]:
            write.append(str(Path(str(dataset["prepared"])).parent))
        url = database_of(settings)
        more = {} if url is None else _relayed(url)
        reached = {"read": read + more.pop("files", []), "write": write, "list": listed}
        return {"network": False, **reached, "closed": closed, **more}
    return None


def database_of(settings: Told) -> str | None:
    """The address of a worker's tables, where they lie in a database: all of them lie in the same."""
    tables = cast("list[Told]", cast("Told", settings["dataset"])["tables"])
    return next((data for table in tables if isinstance(data := data_of(table["data"]), str)), None)


def _relayed(url: str) -> dict[str, Any]:
    """What a worker reaches for a database: its proxy, and the files of PostgreSQL's library."""
    ways = database.ways(url)
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    far = {way.port for way in ways if not database.is_socket(way.far)}
    allowed = {
        "connect": sorted(far | {DNS}), "read": [*SYSTEM, *program(), *HOSTS], "write": list(WRITABLE),
        "closed": [os.sep],
    }  # fmt: skip
    relay = {
        "command": sandboxed([sys.executable, "-P", "-m", "sulq.service.worker.pg_proxy"]),
        "environment": kept,
        "lines": [allowed, {"to": [[way.far, way.port] for way in ways]}],
        "listen": [[way.near, way.port] for way in ways],
    }
    ports = sorted({way.port for way in ways})
    return {"files": [*database.WHO, *database.files(url)], "connect": ports, "relay": relay}


def _ledgers(service: Told, told: Iterable[Told]) -> dict[str, list[str]]:
    """What the clerk reaches beside the program, for the ledgers of these datasets and of those it registered.

    A dataset that an owner registers later begins its ledger in the folder `ledgers`, or else beside its data: then
    all below data_root is the clerk's to change.
    """
    state = Path(str(service["state"]))
    datasets = [DatasetSettings.from_json(tree) for tree in told]
    datasets += [found for _, found in RegisteredStore(state / "datasets").read() if isinstance(found, DatasetSettings)]
    read, write, listed = [], [str(state)], []
    tables = [table for declared in datasets for table in declared.tables if not table.facts.public]
    closed = [str(path) for table in tables for path in table.files]
    for declared in datasets:
        if isinstance(declared.prepared, Path):
            closed += [str(declared.prepared), str(_own(declared.prepared))]
        if "://" in declared.ledger:
            read += [*NAMES, *database.files(declared.ledger)]
        else:
            write.append(str(Path(declared.ledger).parent))
        if declared.anchor is not None:
            write.append(str(declared.anchor.resolve().parent))
    if service.get("anchors") is not None:
        write.append(_made(str(service["anchors"])))
    if service.get("data_root") is not None:
        root = str(service["data_root"])
        if service.get("ledgers") is None:
            write.append(root)
            closed.append(root)
        else:
            listed.append(root)
            write.append(_made(str(service["ledgers"])))
    return {"read": read, "write": write, "list": listed, "closed": closed}


def _made(folder: str) -> str:
    """A folder that the clerk may change; one that cannot be made is the clerk's to say."""
    with contextlib.suppress(OSError):
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


def settled(settings: Told) -> dict[str, object]:
    """A worker's settings with its prepared copy in a folder of its own, which is made: it may change that alone.

    A copy that lies where the owner said, from an earlier start or from the
    library, is linked there once, so that it need not be made again.
    """
    dataset = cast("Told", settings["dataset"])
    if not dataset["prepared"]:
        return dict(settings)
    wanted = Path(str(dataset["prepared"]))
    own = _own(wanted)
    with contextlib.suppress(OSError):  # a folder that cannot be made is the worker's to say
        own.parent.mkdir(mode=0o700, exist_ok=True)
        if wanted.is_file() and not own.exists():
            own.hardlink_to(wanted)
    return {**settings, "dataset": {**dataset, "prepared": str(own)}}


def _own(wanted: Path) -> Path:
    """Where a worker keeps the copy that its owner wants at a place."""
    return wanted.with_name(f"{wanted.name}.d") / "rows"
