"""Several files as one table: a list of paths, a pattern, or a folder, whose hive partitions are columns."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from sulq.errors import SetupError

MAX_PARTS: Final = 4096
KINDS: Final = (".parquet", ".csv", ".csv.gz")
NOBODY: Final = "__HIVE_DEFAULT_PARTITION__"  # a partition's value that is missing
_WILD: Final = re.compile(r"[*?\[]")
_HIDDEN: Final = ("_", ".")
Told = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Files:
    """The files that an owner's words stand for, in order; `told` finds them again.

    `values`: of each file what the folders above it say, NAME=VALUE, the same names for all.
    """

    told: tuple[str, ...]
    paths: tuple[Path, ...]
    names: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]

    @property
    def folder(self) -> Path | None:
        """The folder that was told, where it was one alone."""
        return Path(self.told[0]) if len(self.told) == 1 and _is(Path(self.told[0]), folder=True) else None

    @property
    def stamp(self) -> tuple[int, int]:
        """The size of all files together, and a number that changes with the name, size or time of any (SR12)."""
        stats = [path.stat() for path in self.paths]
        said = [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in zip(self.paths, stats, strict=True)]
        digest = hashlib.sha256(json.dumps(said).encode()).digest()
        return sum(stat.st_size for stat in stats), int.from_bytes(digest[:7], "big")


def find_files(data: object) -> Files | None:
    """The files of a list, a pattern or a folder; None where one file, or something else, is meant."""
    if isinstance(data, Files):
        return data
    if isinstance(data, (list, tuple)) and all(isinstance(item, (str, os.PathLike)) for item in data):
        return _files([os.fspath(item) for item in data])
    if isinstance(data, (str, os.PathLike)) and "://" not in str(data):
        path = _path(data)
        if _is(path, folder=True) or (_WILD.search(str(path)) and not _is(path, folder=False)):
            return _files([str(data)])
    return None


def _path(told: Told) -> Path:
    try:
        return Path(told).expanduser()
    except RuntimeError:  # nobody is called so
        return Path(told)


def _is(path: Path, *, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError):  # a name longer than any file's
        return False


def _files(told: list[str]) -> Files:
    found = [each for item in told for each in _expanded(_path(item))]
    if not found:
        remedy = f"Name files that end in {', '.join(KINDS)}."
        where = f"There is no data file in {told[0][:200]!r}." if told else "The list of data files is empty."
        raise SetupError("missing-file", where, remedy)
    if len(found) > MAX_PARTS:
        raise SetupError("unreadable-data", f"There are more than {MAX_PARTS:,} files.", "Put rows into fewer files.")
    paths = tuple(path.resolve() for path, _ in found)
    same = {(stat.st_dev, stat.st_ino): path for path, stat in ((path, path.stat()) for path in paths)}
    if len(same) != len(paths):  # its rows would count twice
        raise SetupError("bad-declaration", "One file stands twice among the parts.", "Name each file once.")
    _agree(paths, "another kind of file", [_kind(path) for path in paths])
    partitions = [dict(values) for _, values in found]
    _agree(paths, "other partitions", [tuple(each) for each in partitions])
    values = tuple(tuple(each.values()) for each in partitions)
    return Files(tuple(str(_path(item).absolute()) for item in told), paths, tuple(partitions[0]), values)


def _expanded(path: Path) -> Iterable[tuple[Path, list[tuple[str, str | None]]]]:
    """The files of one word, each with its partitions; what is hidden, and what is no data file, is none of them."""
    path = path.absolute()
    if _is(path, folder=False):
        if not _kind(path):
            raise SetupError("unreadable-data", f"{path.name!r} ends in none of {', '.join(KINDS)}.")
        return [(path, [])]
    if _is(path, folder=True):
        root, pattern = path, "**/*"
    else:
        fixed = next((i for i, part in enumerate(path.parts) if _WILD.search(part)), None)
        if fixed is None:
            raise SetupError("missing-file", f"There is no data file {path.name[:200]!r}.")
        root, pattern = Path(*path.parts[:fixed]), str(Path(*path.parts[fixed:]))
    found = []
    for each in sorted(root.glob(pattern)):
        within = each.relative_to(root).parts
        if _is(each, folder=False) and _kind(each) and not any(part.startswith(_HIDDEN) for part in within):
            found.append((each, [_partition(part) for part in within[:-1] if "=" in part]))
    return found


def _partition(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value == NOBODY else unquote(value)


def _kind(path: Path) -> str:
    name = path.name.lower()
    return next((kind.removesuffix(".gz") for kind in KINDS if name.endswith(kind)), "")


def _agree(paths: Iterable[Path], what: str, facts: Iterable[object]) -> None:
    """Refuse the first part of which something is other than of the first of all."""
    first, *others = zip(paths, facts, strict=True)
    for path, fact in others:
        if fact != first[1]:
            raise unlike_part(path, first[0], what)


def unlike_part(part: Path, first: Path, what: str) -> SetupError:
    """Stop the owner, who is told which part it is."""
    why = f"The part {part.name!r} (in {part.parent.name!r}) is or has {what} than {first.name!r}."
    return SetupError("unreadable-data", why, "All parts have the same columns of the same types in the same order.")
