"""What a Spark session must be set to before it may hold private rows (T40, T78).

Spark starts with everything open: anybody on the network may send it code, its
pages show what it works on, what it spills to disk is in clear. A session that
is not shut is refused before a row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from sulq.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext

HERE: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.driver.maxResultSize": "0",
    "spark.log.level": "OFF",
}
"""Everywhere: no pages, no logs of the driver, nothing spilled in clear, no answer that fails for its length."""

CLUSTER: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
"""On a cluster besides: who has no secret is not heard, and what goes over the network is encrypted."""

SETTINGS: Final[Mapping[str, str]] = {
    **HERE,
    **CLUSTER,
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.ui.showConsoleProgress": "false",
}
"""To start a session with; on a cluster `spark.authenticate.secret` comes from the owner."""

UNSET: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "true",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "false",
    "spark.driver.maxResultSize": "1g",
    "spark.log.level": "WARN",
    "spark.authenticate": "false",
    "spark.network.crypto.enabled": "false",
}


def local(master: str) -> bool:
    """Whether a master is this process itself."""
    return master.partition("[")[0] == "local"


def open_doors(settings: Mapping[str, str], master: str) -> list[str]:
    """The settings that are not as they must be, as they should be written."""
    asked = HERE if local(master) else {**HERE, **CLUSTER}
    return [
        f"{name}={value}"
        for name, value in asked.items()
        if settings.get(name, UNSET[name]).strip().lower() not in (value.lower(), f"{value}b")
    ]


def check(context: SparkContext) -> None:
    """Refuse a session that is not shut."""
    found = open_doors(dict(context.getConf().getAll()), cast("str", context.master))
    if found:
        raise SetupError(
            "bad-config",
            f"This Spark session may not hold private rows: it was not started with {', '.join(found)}.",
            "Start a session of its own with these settings (docs/operate/spark.md).",
        )
