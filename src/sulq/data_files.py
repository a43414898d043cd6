"""Several files as one table: a list of paths, a pattern, or a folder, whose hive partitions are columns."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from sulq.addresses import stem
from sulq.errors import SetupError

MAX_PARTS: Final = 4096
MAX_DEEP: Final = 2  # of `**` in a pattern that comes over HTTP: each more looks into every folder once more
KINDS: Final = (".parquet", ".csv", ".csv.gz")
NOBODY: Final = "__HIVE_DEFAULT_PARTITION__"  # a partition's value that is missing
_WILD: Final = re.compile(r"[*?\[]")
_HIDDEN: Final = ("_", ".")
Told = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """An owner's pattern, by which a ledger knows the files again that it stands for, whatever they are called."""

    told: str

    def holds(self, file: Path) -> bool:
        """Whether a file is one of those that the pattern stands for, links in the pattern's own folder followed."""
        root, pattern = _fixed(Path(self.told))
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # links in a circle
            return _fits(file.relative_to(root.resolve()).parts, pattern)
        return False

    def behind_links(self, within: Path | None) -> Iterator[Path]:
        """Files that it stands for now, in folders that links lead to: later ones there are known by these."""
        for path, _ in _expanded(Path(self.told), within):
            if not self.holds(path.resolve()):
                yield path.resolve()

    @property
    def scattered(self) -> bool:
        """Whether its files may come to lie in other folders, from which a ledger beside these is not found."""
        return any(_WILD.search(part) and "=" not in part for part in _fixed(Path(self.told))[1][:-1])


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names of folders and a file fit a pattern, in which `**` is any number of folders."""
    if not parts or not pattern:
        return not parts and not pattern
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


@dataclass(frozen=True, slots=True)
class Files:
    """The files that an owner's words stand for, in order; `told` finds them again.

    `values`: of each file what the folders above it say, NAME=VALUE, the same names for all. `within`: the folder that
    every file lies in, links followed; None where they may lie anywhere.
    """

    told: tuple[str, ...]
    paths: tuple[Path, ...]
    names: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]
    within: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder that was told, where it was one alone."""
        return Path(self.told[0]) if len(self.told) == 1 and _is(Path(self.told[0]), folder=True) else None

    @property
    def covered(self) -> tuple[Path | Pattern, ...]:
        """What a ledger notes: every file, and the folders and patterns that were named, for files that come later."""
        folders = [Path(item).resolve() for item in self.told if _is(Path(item), folder=True)]
        patterns = [Pattern(item) for item in self.told if _is_pattern(item)]
        linked = {
            Pattern(str(path.parent / Path(own.told).name))
            for own in patterns
            for path in own.behind_links(self.within)
        }
        return *folders, *patterns, *sorted(linked, key=lambda each: each.told), *self.paths

    @property
    def name(self) -> str:
        """What tells these words from others, whatever files they stand for now."""
        first = Path(self.told[0])
        first = _fixed(first)[0] if _is_pattern(self.told[0]) else first
        return f"{stem(first)}-{hashlib.sha256(json.dumps(self.told).encode()).hexdigest()[:8]}"

    @property
    def stamp(self) -> tuple[int, int]:
        """The size of all files together, and a number that changes with the name, size or time of any (SR12)."""
        try:
            stats = [path.stat() for path in self.paths]
        except OSError:
            raise SetupError("missing-file", "A part of the data is no longer there.") from None
        said = [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in zip(self.paths, stats, strict=True)]
        digest = hashlib.sha256(json.dumps(said).encode()).digest()
        return sum(stat.st_size for stat in stats), int.from_bytes(digest[:7], "big")

    @property
    def listed(self) -> list[Path]:
        """The folders whose names must be seen to find the files again."""
        found = {Path(item) for item in self.told if _is(Path(item), folder=True)}
        found |= {_fixed(Path(item))[0] for item in self.told if _is_pattern(item)}
        return sorted(found | {path.parent for path in self.paths} if found else found)

    def again(self) -> Files:
        """The files that the same words stand for now."""
        return _files(list(self.told), self.within)

    def to_json(self) -> dict[str, object]:
        """As a tree of JSON, between the processes of a server."""
        within = None if self.within is None else str(self.within)
        paths = [str(path) for path in self.paths]
        return {"told": self.told, "paths": paths, "names": self.names, "values": self.values, "within": within}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Files:
        """Read it back; no folder is looked into."""
        paths, values = map(Path, tree["paths"]), map(tuple, tree["values"])
        within = None if tree["within"] is None else Path(tree["within"])
        return cls(tuple(tree["told"]), tuple(paths), tuple(tree["names"]), tuple(values), within)


def find_files(data: object, *, within: Path | None = None) -> Files | None:
    """The files of a list, a pattern or a folder; None where one file, or something else, is meant.

    `within`: a folder that no part may lead out of.
    """
    if isinstance(data, Files):
        return data
    if isinstance(data, str) and not data:  # a path of no letters is the folder that the process runs in
        raise SetupError("missing-file", "The name of the data is empty.", "Name a file or a folder; '.' is this one.")
    if isinstance(data, (list, tuple)) and all(isinstance(item, (str, os.PathLike)) for item in data):
        return _files([os.fspath(item) for item in data], within)
    if isinstance(data, (str, os.PathLike)) and "://" not in str(data):
        path = _path(data)
        if _is(path, folder=True) or (_WILD.search(str(path)) and not _is(path, folder=False)):
            return _files([str(data)], within)
    return None


def _path(told: Told) -> Path:
    try:
        return Path(told).expanduser()
    except RuntimeError:  # nobody is called so
        return Path(told)


def _is_pattern(item: str) -> bool:
    return bool(_WILD.search(item)) and not any(_is(Path(item), folder=folder) for folder in (False, True))


def _is(path: Path, *, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError):  # a name longer than any file's
        return False


def _files(told: list[str], within: Path | None = None) -> Files:
    if not all(told):
        raise SetupError("missing-file", "The name of a data file is empty.", "Name each file, pattern or folder.")
    if any("://" in item for item in told):
        raise not_fetched()
    if within is not None:
        for item in told:
            _below(_path(item).absolute(), within)
    found = [each for item in told for each in _expanded(_path(item), within)]
    if not found and within is not None:  # what a link leads to elsewhere is no more there than what is nowhere
        raise not_below()
    if not found:
        remedy = f"Name files that end in {', '.join(KINDS)}."
        where = f"There is no data file in {told[0][:200]!r}." if told else "The list of data files is empty."
        raise SetupError("missing-file", where, remedy)
    if len(found) > MAX_PARTS:
        raise SetupError("unreadable-data", f"There are more than {MAX_PARTS:,} files.", "Put rows into fewer files.")
    paths = tuple(path.resolve() for path, _ in found)
    if within is not None and not all(path.is_relative_to(within) for path in paths):
        raise not_below()
    _named(told, paths)
    same = {(stat.st_dev, stat.st_ino): path for path, stat in ((path, path.stat()) for path in paths)}
    if len(same) != len(paths):  # its rows would count twice
        raise SetupError("bad-declaration", "One file stands twice among the parts.", "Name each file once.")
    _agree(paths, "another kind of file", [_kind(path.name) for path in paths])
    partitions = [dict(values) for _, values in found]
    twice = next((path for path, values in found if len(dict(values)) < len(values)), None)
    if twice is not None:
        raise SetupError("unreadable-data", f"Two folders above the part {twice.name!r} say one partition's value.")
    _agree(paths, "other partitions", [tuple(each) for each in partitions])
    values = tuple(tuple(each.values()) for each in partitions)
    return Files(tuple(str(_path(item).absolute()) for item in told), paths, tuple(partitions[0]), values, within)


def _named(told: list[str], paths: Sequence[Path]) -> None:
    """Refuse names that are not texts: nothing could be written of them."""
    try:
        "".join([*told, *map(str, paths)]).encode()
    except UnicodeEncodeError:
        raise SetupError("unreadable-data", "The name of a data file is not UTF-8.", "Rename it.") from None


def not_fetched() -> SetupError:
    """What is told of a data file behind an address."""
    why = "A file behind an address is not read: nothing is fetched while data is opened."
    return SetupError("engine-not-available", why, "Download it, and connect to its path.")


def not_below() -> SetupError:
    """What leads out of a folder is answered as what is not there (T70)."""
    return SetupError("missing-file", "There is no such data file.", "Name files below the server's data_root.")


def _below(path: Path, within: Path) -> None:
    """Refuse a word that looks elsewhere, before any folder is looked into; a part may still be a link that does."""
    root, pattern = _fixed(path) if _WILD.search(str(path)) and not _is(path, folder=False) else (path, ())
    if not _inside(root, within) or ".." in pattern or pattern.count("**") > MAX_DEEP:
        raise not_below()


def _fixed(path: Path) -> tuple[Path, tuple[str, ...]]:
    """A pattern's folder, up to which nothing is left open, and the rest."""
    place = next((i for i, part in enumerate(path.parts) if _WILD.search(part)), len(path.parts))
    return Path(*path.parts[:place]), path.parts[place:]


def _expanded(path: Path, within: Path | None) -> Iterable[tuple[Path, list[tuple[str, str | None]]]]:
    """The files of one word, each with its partitions; what is hidden, and what is no data file, is none of them."""
    path = path.absolute()
    if _is(path, folder=False):
        if not _kind(path.name):
            raise SetupError("unreadable-data", f"{path.name!r} ends in none of {', '.join(KINDS)}.")
        return [(path, [])]
    root, pattern = (path, ("**", "*")) if _is(path, folder=True) else _fixed(path)
    if not pattern:
        raise SetupError("missing-file", f"There is no data file {path.name[:200]!r}.")
    if any("**" in part and part != "**" for part in pattern):
        raise SetupError("missing-file", f"There is no data file {path.name[:200]!r}.", "Is it a pattern?")
    found = []
    for each in sorted(set(_matching(root, pattern, within))):
        folders = each.relative_to(root).parts[:-1]
        found.append((each, [_partition(part) for part in folders if "=" in part]))
    return found


def _matching(folder: Path, pattern: Sequence[str], within: Path | None, begun: Path | None = None) -> Iterator[Path]:
    """The files of a folder that fit a pattern; no file is left out unseen, but for what is hidden.

    A linked folder is entered where the pattern has a name for it. Where it has `**`, which began at the folder
    `begun`, one that leads to a folder below that is passed over, which is read anyway, and one that leads elsewhere is
    refused, as its later files would not lie below the folder that a ledger covers.

    Raises:
        SetupError: a folder cannot be listed, or a link leads nowhere or elsewhere; `missing-file` out of `within`.
    """
    first, rest = pattern[0], pattern[1:]
    deep = first == "**"
    begun = begun or folder
    if deep and rest:
        yield from _matching(folder, rest, within)
    for name in _names(folder) if _WILD.search(first) else [first]:
        if name.startswith(_HIDDEN) or not (deep or (fnmatchcase(name, first) and (rest or _kind(name)))):
            continue
        path = folder / name
        mode, is_link = _mode(path, within)
        if not stat.S_ISDIR(mode):
            if stat.S_ISREG(mode) and not deep and not rest:
                yield path
        elif not deep and rest:
            yield from _matching(path, rest, within)
        elif deep and not is_link:
            yield from _matching(path, pattern, within, begun)
        elif deep and not _is_walked(path.resolve(), begun.resolve()):
            why = f"The folder {name!r} (in {folder.name!r}) is a link that leads elsewhere."
            raise SetupError("unreadable-data", why, "Name the folders, or a pattern with a name or * for each.")


def _names(folder: Path) -> list[str]:
    """The names in a folder; none where there is no such folder."""
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
    except OSError:
        raise _unseen(folder) from None


def _mode(path: Path, within: Path | None) -> tuple[int, bool]:
    """What a path leads to, 0 for nothing, and whether it is a link."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return 0, False
    except OSError:
        raise _unseen(path.parent) from None
    if not stat.S_ISLNK(mode):
        return mode, False
    if within is not None and not _inside(path, within):
        raise not_below()
    try:
        return path.stat().st_mode, True
    except OSError:
        why = f"The link {path.name!r} (in {path.parent.name!r}) leads nowhere, or where this user may not look."
        raise SetupError("unreadable-data", why, "Remove it, or put back what it leads to.") from None


def _unseen(folder: Path) -> SetupError:
    why = f"What lies in the folder {folder.name[:200]!r} cannot be seen by this user."
    return SetupError("unreadable-data", why, "Its rows would be left out: check its permissions.")


def _is_walked(folder: Path, root: Path) -> bool:
    """Whether a folder is one of those below another that are read by themselves."""
    inside = folder.relative_to(root).parts if folder.is_relative_to(root) else _HIDDEN
    return not any(part.startswith(_HIDDEN) for part in inside)


def _inside(path: Path, within: Path) -> bool:
    """Whether a path leads into a folder, links followed."""
    try:
        return path.resolve().is_relative_to(within)
    except (OSError, ValueError, RuntimeError):  # links in a circle
        return False


def _partition(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value == NOBODY else unquote(value)


def _kind(name: str) -> str:
    return next((kind.removesuffix(".gz") for kind in KINDS if name.lower().endswith(kind)), "")


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
