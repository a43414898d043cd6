"""Cells of the page as it stands, beside new ones: a change to one learner measures that learner's cells alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.learning.judge import Cell, Scores, judge
from benchmarks.learning.page import EXACT, OURS, _table, _told

ROW: Final = re.compile(r"\| (\S+) \| ([\d.]+) \| (.+?) \| (.+?) \| (\S+) \| .*\|$")
SCORE: Final = re.compile(r"(-?[\d.]+) ± ([\d.]+)(?: \((\d+) runs\))?$")


@dataclass(frozen=True)
class Told(Scores):
    """Scores of which the page tells mean and standard error alone."""

    told: tuple[float, float] = (0.0, 0.0)

    @property
    def mean(self) -> float:
        """As told."""
        return self.told[0]

    @property
    def slack(self) -> float:
        """As told."""
        return self.told[1]


def with_cells(page: str, new: list[dict[str, object]], runs: int = 20) -> str:
    """The page with the verdict and the tables made anew, our scores of some cells replaced by measured ones."""
    cells = {(cell.task, cell.table, cell.epsilon): cell for cell in _cells(page, runs)}
    units = {
        line["table"]: abs(line["scores"][0]) for line in new if line["task"] == "k-means" and line["who"] == EXACT
    }
    for line in new:
        key = str(line["task"]), str(line["table"]), float(line["epsilon"])  # type: ignore[arg-type]
        if key in cells:
            unit = units.get(line["table"], 1.0) if line["task"] == "k-means" else 1.0
            cells[key] = replace(cells[key], ours=Scores(OURS, tuple(score / unit for score in line["scores"])))
    head = page[: page.index("- no cell worse by more than")]
    rows = _told(judge(cells.values()), runs)
    for task in dict.fromkeys(cell.task for cell in cells.values()):
        rows += _table(task, list(cells.values()), runs)
    return head + "\n".join(rows) + "\n"


def _cells(page: str, runs: int) -> list[Cell]:
    names = dict(re.findall(r"- (.+?, .+?, epsilon [\d.]+): .* \((diffprivlib[^)]*)\), ", page))
    found = []
    for section in page.split("\n### ")[1:]:
        task, *lines = section.splitlines()
        for table, epsilon, ours, theirs, exact in (match.groups() for line in lines if (match := ROW.match(line))):
            who = names.get(f"{task}, {table}, epsilon {epsilon}", "diffprivlib")
            own, peer = (_scores(task, name, text, runs) for name, text in (("sulq", ours), (who, theirs)))
            assert own is not None
            sign = -1.0 if task == "k-means" else 1.0
            found.append(Cell(task, table, float(epsilon), own, (peer,) if peer else (), sign * float(exact)))
    return found


def _scores(task: str, who: str, text: str, runs: int) -> Told | None:
    """A cell of the table; None where the peer had no run in time."""
    match = SCORE.match(text)
    if match is None:
        return None
    mean, slack, few = match.groups()
    sign = -1.0 if task == "k-means" else 1.0
    return Told(who, (0.0,) * int(few or runs), (sign * float(mean), float(slack)))
