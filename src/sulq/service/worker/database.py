"""How a worker reaches a PostgreSQL database: through a proxy, and nothing else.

A worker has a network of its own with nothing in it but a loopback. For each host
that the address of its tables names, a listener stands there at the same port, held by
a proxy outside (`pg_proxy`), which carries every connection to that one host. The worker
asks PostgreSQL's library to connect to the listener, under the host's own name: TLS,
passfiles and certificates go by the name, as ever.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from sulq.addresses import meant
from sulq.errors import SetupError

PORT: Final = 5432
MAX_HOSTS: Final = 16  # hosts in one address
NEXT: Final = "Write it as postgresql://ROLE@HOST:PORT/DATABASE; passwords go into PGPASSWORD or a passfile."
# What PostgreSQL's library reads besides: its own files in a home, those an address names, and those of its variables.
AT_HOME: Final = (".pgpass", ".pg_service.conf", ".postgresql")
OF_ADDRESS: Final = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "servicefile")
OF_ENVIRONMENT: Final = (
    "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL",
    "PGSSLCRLDIR",
)  # fmt: skip
# Those of its variables that say which database is meant, and are no secret.
WHERE: Final = frozenset({"PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"})
WHO: Final = ("/etc/passwd",)  # as whom it runs, where no role is named


class ProxyRoute(NamedTuple):
    """One host of a database: where the worker's listener for it stands, and what the proxy connects to."""

    near: str
    port: int
    far: str  # a host's name or number, or the folder of a socket


def ways(url: str, environment: Mapping[str, str] = os.environ) -> tuple[ProxyRoute, ...]:
    """The hosts that an address names, in its order.

    Raises:
        SetupError: `bad-config`: it names none, or leaves it to a service file; a server must know where its workers
            may connect before it starts them.
    """
    told = meant(url)
    if told.get("service") or environment.get("PGSERVICE"):
        raise SetupError("bad-config", "A served database is named by its host, and by no service file.", NEXT)
    hosts = names(url, environment)
    numbers = told.get("hostaddr", environment.get("PGHOSTADDR", ""))
    far = numbers.split(",") if numbers else hosts
    ports = told["port"].split(",") if told.get("port") else [port for _, port in _pairs(url)]
    if not any(ports):
        ports = environment.get("PGPORT", str(PORT)).split(",")
    ports = ports * len(far) if len(ports) == 1 else ports
    if not 0 < len(far) <= MAX_HOSTS or not all(far) or len(ports) != len(far) or (hosts and len(hosts) != len(far)):
        raise SetupError("bad-config", "The address of a served database must name its host.", NEXT)
    numbered = enumerate(zip(far, ports, strict=True), start=1)
    return tuple(ProxyRoute(f"127.0.0.{i}", _port(port), host) for i, (host, port) in numbered)


def names(url: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The hosts of an address by name, or none where it has numbers alone."""
    told, pairs = meant(url), _pairs(url)
    named = [unquote(host) for host, _ in pairs] if any(host for host, _ in pairs) else []
    hosts = told["host"].split(",") if told.get("host") else named
    return hosts or [host for host in environment.get("PGHOST", "").split(",") if host]


def base(url: str, environment: Mapping[str, str] = os.environ) -> str:
    """The name of the database; where none is told, it is called as the role is."""
    told, (place, _, path) = meant(url), _start(url).partition("/")
    name = told.get("dbname", unquote(path) or environment.get("PGDATABASE", ""))
    if name:
        return name
    who = unquote(place.rpartition("@")[0].partition(":")[0])
    with contextlib.suppress(OSError, KeyError):  # who runs this may have no name
        return told.get("user") or who or environment.get("PGUSER") or getpass.getuser()
    return ""


def near(url: str, environment: Mapping[str, str] = os.environ) -> str:
    """The same database as a worker reaches it: its listeners in place of the hosts, which keep their names."""
    found = ways(url, environment)
    more = f"hostaddr={','.join(way.near for way in found)}&port={','.join(str(way.port) for way in found)}"
    if not names(url, environment):  # or a password would be looked for under the listener's number
        more = f"host={quote(','.join(way.far for way in found), safe=',:')}&{more}"
    if all(is_socket(way.far) for way in found):  # PostgreSQL speaks no TLS over a socket of the machine's own
        more += "&sslmode=disable"
    return f"{url}{'&' if '?' in url else '?'}{more}"


def files(url: str) -> list[str]:
    """What PostgreSQL's library reads when it connects to this address."""
    told = meant(url)
    named = [told.get(name) for name in OF_ADDRESS] + [os.environ.get(name) for name in OF_ENVIRONMENT]
    home = Path("~").expanduser()
    return [*(str(home / name) for name in AT_HOME), *(name for name in named if name)]


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of PostgreSQL's library, among them a password, and where its files lie by default."""
    return {name: value for name, value in environment.items() if name == "HOME" or is_variable(name)}


def is_variable(name: str) -> bool:
    """Whether a variable is one of PostgreSQL's library."""
    return re.match("PG[A-Z]", name) is not None


def is_secret(name: str) -> bool:
    """Whether a variable is one of the library's that says more than which database is meant."""
    return is_variable(name) and name not in WHERE


def is_socket(far: str) -> bool:
    """Whether a host is the folder of a socket of the machine's own."""
    return far.startswith("/")


def _start(url: str) -> str:
    """Role, hosts and database, as they are written."""
    return url.partition("?")[0].partition("://")[2]


def _pairs(url: str) -> list[tuple[str, str]]:
    start = _start(url).partition("/")[0].rpartition("@")[2]
    return [_pair(item) for item in start.split(",")] if start else []


def _pair(item: str) -> tuple[str, str]:
    """A host and its port, either of them perhaps empty; a number of IPv6 stands in brackets."""
    found = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::(.*))?", item)
    return ("", "") if found is None else (found[1] or found[2] or "", found[3] or "")


def _port(text: str) -> int:
    number = int(text or PORT) if (text or str(PORT)).isascii() and (text or str(PORT)).isdigit() else 0
    if not 0 < number < 2**16:
        raise SetupError("bad-config", "A port in the address of a database lies between 1 and 65535.", NEXT)
    return number
