"""Which files a process of the server may open, where the kernel can see to it (Landlock).

    web      the program, and the server's certificate; neither data, ledgers nor the access store
    worker   the program and its data, read-only; the folder of its prepared copy, and the one it spills to
    look     the program and the one file it looks at; the folder it spills to

The clerk is not in this list. It opens ledgers, which lie wherever their owner
says, most often beside the data, and the kernel knows no rule for a folder
without one of its files: that the clerk opens no data file is its code's doing.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, cast

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
    own = wanted.with_name(f"{wanted.name}.d") / "rows"
    with contextlib.suppress(OSError):  # a folder that cannot be made is the worker's to say
        own.parent.mkdir(mode=0o700, exist_ok=True)
        if wanted.is_file() and not own.exists():
            own.hardlink_to(wanted)
    return {**settings, "dataset": {**dataset, "prepared": str(own)}}
