"""What every release is: an object made once from answers, that anybody may use for ever without the data.

A release sees answers only, so whatever is done with it afterwards costs nothing more (post-processing).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa

from sulq.release import saving
from sulq.release.payment import Chart, Paid


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(ABC):
    """A published object. `paid` says what it cost; a kind adds its fields, and says what its files hold.

    A kind is a frozen dataclass with `kind`, its name; `title()`; `tables()` and `facts()`, from which
    `of` makes it again; and `charts()` for its page. Fields are public: all of it comes from answers.
    """

    kind: ClassVar[str] = ""
    paid: Paid

    @abstractmethod
    def title(self) -> str:
        """One line for people."""

    @abstractmethod
    def tables(self) -> dict[str, pa.Table]:
        """The tables that are saved, each by its file's name without an ending."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Whatever else is needed to make it again, as plain JSON."""

    @classmethod
    @abstractmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The release that was saved as these."""

    def charts(self) -> list[Chart]:
        """The pictures of its page."""
        return []

    def save(self, path: str | Path, written: saving.Written = "parquet") -> None:
        """Write it into a folder: a Parquet or CSV file for each table, `release.json`, and a page to read.

        A release that is there already is replaced; other files of that folder are left alone.

        Raises:
            QuestionError: `bad-parameter`: tables are written as Parquet or CSV.
            SetupError: `missing-file`: the folder cannot be written. `folder-in-use`: it holds something else.
        """
        saving.save(self, path, written)

    def __repr__(self) -> str:
        return f"{self.title()}; {self.paid}"

    def __init_subclass__(cls) -> None:
        # A dataclass writes down all its fields where its own class says nothing else: whole tables, here.
        if "__repr__" not in vars(cls):
            cls.__repr__ = Release.__repr__  # type: ignore[method-assign]
