"""The datasets that were registered by calls, one file each below the server's state, there after a restart.

Beside them a note of the ledger that each table's rows were put under, which stays
when a dataset is taken away: who registers the rows again finds what was spent (T56).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from sulq.errors import SetupError, SulqError
from sulq.service.clerk.ledger_choice import rows_of
from sulq.service.settings import DatasetSettings

LEDGERS: Final = ".ledgers"  # no dataset's name begins so

_log = logging.getLogger(__name__)


class RegisteredStore:
    """A folder of declarations; what is put there is durable on return."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def names(self) -> list[str]:
        """The datasets there are, readable or not."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    @property
    def ledgers(self) -> dict[str, str]:
        """Under which ledger each table's rows were ever registered.

        Raises:
            SetupError: `bad-declaration`; the note cannot be read, and nobody can say what has been spent.
        """
        place = self._folder / LEDGERS
        try:
            found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
            if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
                raise ValueError("not a note of ledgers")
        except (OSError, ValueError) as error:
            raise SetupError(
                "bad-declaration", "The server's note of ledgers cannot be read.", f"Restore {place} from a copy."
            ) from error
        return cast("dict[str, str]", found)

    def put(self, declared: DatasetSettings) -> None:
        """Write a dataset down, and first the ledger of its rows."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        noted = self.ledgers
        self._write(self._folder / LEDGERS, noted | dict.fromkeys(rows_of(declared), declared.ledger))
        self._write(self._path(declared.name), declared.to_json())

    def _write(self, path: Path, tree: object) -> None:
        """Durable on return: synced under another name, renamed, and the folder synced too."""
        draft = path.with_name(f".{path.name}.new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(tree, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        self._sync()

    def remove(self, name: str) -> None:
        """Take a dataset away; its data and its ledger stay where they are."""
        self._path(name).unlink(missing_ok=True)
        if self._folder.is_dir():
            self._sync()

    def read(self) -> Iterator[tuple[str, DatasetSettings | SulqError]]:
        """Each dataset by its name, or why its file cannot be read: one that is damaged stops no other."""
        for name in self.names:
            try:
                found = DatasetSettings.from_json(json.loads(self._path(name).read_text(encoding="utf-8")))
                if found.name != name:
                    raise ValueError("the file bears another name")
            except (OSError, ValueError, TypeError, LookupError, AttributeError, SulqError) as error:
                _log.error("a dataset's file cannot be read", extra={"dataset": name, "error": type(error).__name__})
                yield (
                    name,
                    SetupError(
                        "bad-declaration",
                        f"What was registered as {name!r} cannot be read.",
                        "Take the dataset away (DELETE /v1/datasets/NAME) and register it again; its ledger stays.",
                    ),
                )
            else:
                yield name, found

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
