"""Releases: objects that are published once, at one price, and answer for ever without the data.

May be imported: the names below. RELEASES is the list that the command line, the server's jobs and the console make
their forms from; a release joins by its name in it.
Never here: a row, noise that protects people, or an ask that is not paid from the spend of the release.

from sulq import release
table = release.contingency(db, ["age", "sex"], [["age", "sex"]], spend=Epsilon(1))
table.save("published")
release.load("published").marginal(["sex"])
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from sulq.release.aim import aim
from sulq.release.base import Release, load_as
from sulq.release.blr import blr, blr_n, blr_rows
from sulq.release.contingency import ContingencyTable, contingency
from sulq.release.directions import (
    discretise,
    halfspace_n,
    projection_dimension,
    projection_failure,
    projections_for,
)
from sulq.release.halfspaces import Halfspaces, halfspaces
from sulq.release.inference import Inference, infer
from sulq.release.mwem import mwem
from sulq.release.publish import Transcript, publish
from sulq.release.report.report import PublishedReport, report
from sulq.release.subsets import infer_t
from sulq.release.synthetic.data import SyntheticData

__all__ = [
    "KINDS",
    "RELEASES",
    "ContingencyTable",
    "Halfspaces",
    "Inference",
    "PublishedReport",
    "Release",
    "SyntheticData",
    "Transcript",
    "aim",
    "blr",
    "blr_n",
    "blr_rows",
    "contingency",
    "discretise",
    "halfspace_n",
    "halfspaces",
    "infer",
    "infer_t",
    "load",
    "mwem",
    "projection_dimension",
    "projection_failure",
    "projections_for",
    "publish",
    "report",
]

# Of releases, each with the function of the same module that makes it.
KINDS: Final[tuple[type[Release], ...]] = (
    ContingencyTable, Halfspaces, Inference, PublishedReport, SyntheticData, Transcript,
)  # fmt: skip

# Every release, by name; its command, its job and its page come from its signature.
RELEASES: Final[tuple[Callable[..., Release], ...]] = (publish, contingency, infer, halfspaces, blr, mwem, aim)


def load(path: str | Path) -> Release:
    """The release that `.save(path)`, `sulq release --out` or the console wrote.

    Raises:
        SetupError: `missing-file`: there is no such folder, or a file of it is gone.
        QuestionError: `bad-release`: it is no release, or of a format or kind this version does not know.
    """
    return load_as(path, {kind.kind: kind for kind in KINDS})
