"""What is public of the files a frame is read from: their names, sizes and times, in one word."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATUS: Final = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+)")
UNKNOWN: Final = "unknown"


def stamp(frame: DataFrame) -> str:
    """A digest of name, size and time of each file; "" where a frame is read from none, UNKNOWN where none answers."""
    try:
        return _stamp([str(file) for file in frame.inputFiles()], frame)
    except Exception:  # noqa: BLE001 - a file that is gone, or a store that does not answer: never as it was
        return UNKNOWN


def _stamp(files: list[str], frame: DataFrame) -> str:
    folders: dict[str, set[str]] = {}
    for file in files:
        folder, _, name = file.rpartition("/")
        folders.setdefault(folder, set()).add(unquote(name))
    java = frame.sparkSession._jvm  # noqa: SLF001 - files have no other door
    conf = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - likewise
    found = []
    for folder, wanted in sorted(folders.items()):  # one call a folder, however many files it has
        place = java.org.apache.hadoop.fs.Path(java.java.net.URI(folder))
        listed = java.scala.runtime.ScalaRunTime.stringOf(place.getFileSystem(conf).listStatus(place))
        told = {path.rpartition("/")[2]: (size, time) for path, size, time in _STATUS.findall(listed)}
        found += [(folder, name, *told[name]) for name in sorted(wanted)]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:32] if found else ""
