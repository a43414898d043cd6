"""Disks that fail: file systems for SQLite, written in Python, that raise errors or lose what was not synced."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import apsw

SECTOR = 512
_names = itertools.count()


class Disk(apsw.VFS):
    """Passes everything on to the real file system; what changes a file is told to `before` first."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_names)}"
        super().__init__(self.name, "")

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        """Called before each write, truncation, sync and deletion."""

    def xOpen(self, name: object, flags: list[int]) -> DiskFile:
        return DiskFile(self, name, flags)

    def xDelete(self, name: str, syncdir: int) -> None:
        self.before("delete", name, int(syncdir))
        super().xDelete(name, bool(syncdir))


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: object, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        if flags[0] & apsw.SQLITE_OPEN_CREATE and not Path(self._path).exists():
            disk.before("create", self._path)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.before("write", self._path, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._disk.before("truncate", self._path, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._disk.before("sync", self._path)
        super().xSync(flags)


class FaultyDisk(Disk):
    """Fails at one call, or from that call on."""

    def __init__(self, at: int, error: type[apsw.Error], *, lasting: bool, only: str = "") -> None:
        self.left = at
        self._error, self._lasting, self._only = error, lasting, only
        self.failed = False
        self.armed = False
        super().__init__()

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        if not self.armed or (self._only and act != self._only):
            return
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self._lasting):
            self.failed = True
            raise self._error(f"{act} failed")


class PowerCut(apsw.IOError):
    """The moment the power goes."""


class VolatileDisk(Disk):
    """Remembers what each sync made durable, and at a power cut keeps little else.

    Of what was written since a file's last sync each sector survives or not by
    the toss of a coin, whatever the order it was written in; one sector may be
    torn in two. A created or deleted name is durable once its directory was
    synced, which SQLite's own file system does with the first sync of a new
    journal and with a deletion that asks for it. Until then a name that was deleted
    and created again holds either what it held before, or what was written to the
    new file: never some sectors of each. `honest` off, syncs do nothing.
    """

    def __init__(self, cut_at: int, draw: random.Random, *, honest: bool = True) -> None:
        self._left = cut_at
        self._draw = draw
        self._honest = honest
        self.off = False
        self._durable: dict[str, bytes | None] = {}  # None: no such name
        self._pending: dict[str, list[tuple[str, int, bytes]]] = {}
        super().__init__()

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        self._left -= 1
        if self._left <= 0:
            self.off = True
        self._note(path)
        if self.off:
            # The last call may have begun when the power went.
            if self._left == 0 and act in {"write", "truncate"}:
                self._pending[path].append((act, offset, data))
            raise PowerCut("the power is cut")
        if act == "sync":
            if self._honest:
                self._durable[path] = Path(path).read_bytes()
                self._pending[path] = []
        elif act == "delete" and offset and self._honest:
            self._durable[path] = None
            self._pending[path] = []
        else:
            self._pending[path].append((act, offset, data))

    def _note(self, path: str) -> None:
        if path not in self._durable:
            self._durable[path] = Path(path).read_bytes() if Path(path).exists() else None
            self._pending[path] = []

    def settle(self) -> None:
        """Leave on the real file system what the disk holds after the power is back."""
        for path, kept in self._durable.items():
            file, files = Path(path), [[]]  # what was written to the file of this name, and to those after a deletion
            for one in self._pending[path]:
                if one[0] == "delete":
                    files.append([])
                else:
                    files[-1].append(one)
            which = self._draw.randrange(len(files))  # the one that the directory names
            durable, pending = (None if which else kept), files[which]
            if durable is None and not (pending and self._draw.random() < 0.5):
                file.unlink(missing_ok=True)
                continue
            image = bytearray(durable or b"")
            for act, offset, data in pending:
                if act == "truncate":
                    if self._draw.random() < 0.5:
                        image = image[:offset].ljust(offset, b"\0")
                elif act == "write":
                    self._write(image, offset, data)
            file.write_bytes(image)

    def _write(self, image: bytearray, offset: int, data: bytes) -> None:
        torn = self._draw.randrange(len(data) // SECTOR + 1) if data else 0
        for place in range(0, len(data), SECTOR):
            part = data[place : place + SECTOR]
            if place // SECTOR == torn:
                part = part[: self._draw.randrange(len(part) + 1)]
            elif self._draw.random() < 0.5:
                continue
            end = offset + place + len(part)
            image.extend(bytes(max(end - len(image), 0)))
            image[offset + place : end] = part
