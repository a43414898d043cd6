"""Which files a process of the server may open, where the kernel can see to it (Landlock).

    web      the program, and the server's certificate; neither data, ledgers nor the access store
    clerk    the program; the folders of the ledgers, of their anchors and of the server's state; names below data_root
    worker   the program and its data, read-only; the folder of its prepared copy, and the one it spills to
    look     the program and the one file it looks at; the folder it spills to

A ledger needs its whole folder: SQLite puts a journal beside it, and a new ledger
is written under another name first. The kernel knows no rule for a folder without
one of its files, so a clerk whose ledgers lie beside the data or its copy could open
those, and says so (`shared`). One that was told of a ledger in PostgreSQL may make TCP
connections, and read what PostgreSQL's own library looks for.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from sulq.server.settings import Declared
from sulq.server.shelf import Shelf

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
# What PostgreSQL's library reads: who it runs as, how names are found, and its own files in a home.
NAMES: Final = ("/etc", "/run/systemd/resolve", "/run/NetworkManager")
AT_HOME: Final = (".pgpass", ".pg_service.conf", ".postgresql")
OF_ADDRESS: Final = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "servicefile")
OF_ENVIRONMENT: Final = (
    "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL",
    "PGSSLCRLDIR",
)  # fmt: skip


def program() -> list[str]:
    """The interpreter, and wherever it finds its modules."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, str(Path(sys.executable).resolve())}
    places |= {*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[2])}
    places |= {place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place}
    places |= {place for place in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if place}
    if os.environ.get("OPENDP_LIB_DIR"):
        places.add(os.environ["OPENDP_LIB_DIR"])
    return sorted(place for place in places if place != os.sep)


def of(part: str, settings: Told, folder: Path | None) -> dict[str, object] | None:
    """What a part may reach, for `apart.py`; None for one that is not kept apart."""
    read, write = [*SYSTEM, *program()], [*WRITABLE, *([] if folder is None else [str(folder)])]
    closed: list[str] = [os.sep]
    if part == "web":
        service = cast("Told", settings["service"])
        read += [str(service[name]) for name in ("tls_cert", "tls_key") if service.get(name) is not None]
        return {"read": read, "write": write, "closed": closed + _there([str(service["state"])])}
    if part == "clerk":
        reached = _ledgers(cast("Told", settings["service"]), cast("list[Told]", settings["datasets"]))
        more = {"read": read + reached["read"], "write": write + reached["write"], "list": reached["list"]}
        return {**more, "tcp": bool(reached["read"]), "closed": closed + _there(reached["closed"])}
    if part == "look":
        return {"network": False, "read": [*read, str(settings["path"])], "write": write, "closed": closed}
    if part == "worker":
        dataset = cast("Told", settings["dataset"])
        tables = cast("list[Told]", dataset["tables"])
        data = [str(table["data"]) for table in tables]
        read += data + [f"{path}.wal" for path in data]  # a DuckDB file's last changes
        if dataset["prepared"] is not False:
            write.append(str(Path(str(dataset["prepared"])).parent))
        return {"network": False, "read": read, "write": write, "closed": closed}
    return None


def _ledgers(service: Told, told: Iterable[Told]) -> dict[str, list[str]]:
    """What the clerk reaches beside the program, for the ledgers of these datasets and of those it registered.

    A dataset that an owner registers later begins its ledger in the folder `ledgers`, or else beside its data: then
    all below data_root is the clerk's to change.
    """
    state = Path(str(service["state"]))
    datasets = [Declared.from_json(tree) for tree in told]
    datasets += [found for _, found in Shelf(state / "datasets").read() if isinstance(found, Declared)]
    read, write, listed = [], [str(state)], []
    closed = [str(table.data) for declared in datasets for table in declared.tables if not table.facts.public]
    for declared in datasets:
        if declared.prepared is not False:
            closed += [str(declared.prepared), str(_own(declared.prepared))]
        if "://" in declared.ledger:
            read += _of_postgresql(declared.ledger)
        else:
            write.append(str(Path(declared.ledger).parent))
        if declared.anchor is not None:
            write.append(str(declared.anchor.resolve().parent))
    if service.get("data_root") is not None:
        root = str(service["data_root"])
        if service.get("ledgers") is None:
            write.append(root)
            closed.append(root)
        else:
            listed.append(root)
            write.append(str(service["ledgers"]))
            with contextlib.suppress(OSError):  # a folder that cannot be made is the clerk's to say
                Path(str(service["ledgers"])).mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"read": read, "write": write, "list": listed, "closed": closed}


def _of_postgresql(address: str) -> list[str]:
    """What connecting to a ledger in PostgreSQL reads."""
    words = dict(parse_qsl(urlsplit(address).query))
    named = [words.get(name) for name in OF_ADDRESS] + [os.environ.get(name) for name in OF_ENVIRONMENT]
    home = Path("~").expanduser()
    return [*NAMES, *(str(home / name) for name in AT_HOME), *(name for name in named if name)]


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


def settled(settings: Told) -> dict[str, object]:
    """A worker's settings with its prepared copy in a folder of its own, which is made: it may change that alone.

    A copy that lies where the owner said, from an earlier start or from the
    library, is linked there once, so that it need not be made again.
    """
    dataset = cast("Told", settings["dataset"])
    if dataset["prepared"] is False:
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
