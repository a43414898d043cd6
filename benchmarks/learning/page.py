"""The page of learned models: gains, demands on single tables, every cell beside its peers, and what is lost."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from benchmarks.learning import sets, tasks
from benchmarks.learning.gains import Gain
from benchmarks.learning.judge import FEWEST, LIMIT, Cell, Scores, Verdict, fall, judge

Key = tuple[str, str, float]  # task, table, epsilon
OURS, EXACT = "sulq", "scikit-learn"
ORDER = (*sets.NAMES, sets.MIXTURE)
ABOUT = """\
The same rows, public bounds and pure epsilon for both. Each task under the relation that diffprivlib's noise is right
for: {relations}. diffprivlib takes the number of rows as public throughout; ours reads it under
replace_one alone. Bounds are those of the tables' schemas, else the range rounded outwards.

- PCA: the part that is held of the variance of the best three components. k-means: inertia as a multiple of
  scikit-learn's; a cluster a class, three at least. Both in the columns' own units; of tables without numbers,
  indicators.
- Linear: accuracy of logistic regression on a held fifth of the rows, against the better of diffprivlib's at two norms
  of the rows: the largest the bounds allow, and half of it. Of winequality-white, R² of linear regression, where
  anything below -1 is told, and averaged, as -1: how much worse a model is than that is not seen.
- Tree: accuracy at depth 5, ID3 against the better of diffprivlib's tree and its forest of ten.
- The better of two is taken after the fact in each cell, for diffprivlib's benefit and at no cost in epsilon.
- Shares and constants of PCA, k-means, naive Bayes, the perceptron, and those of older parts of the other learners were
  chosen on these tables and on generated ones; on a table nobody has looked at ours may do less well. How additive
  models, linear regression by steps, rounds of several classes and even trees decide (decision 0054) was chosen on
  generated tables alone, and judged on a second set, looked at once: docs/benchmarks-epsilon.md. diffprivlib has its
  defaults.
- ± is one standard error. A peer's cell ends after {seconds:g} seconds of its own CPU time (interpret's after ten times
  that), with the runs it has by then.
- A cell in which either side has fewer than {fewest} runs cannot be won: where ours is ahead, or the peer has none in
  time, it is in no share and no median. Where the peer is ahead it counts all the same.
- diffprivlib draws PCA's directions one proposal at a time, for minutes a fit; here in batches, by the same law.
  Its k-means tells without noise which clusters are empty, so its guarantee there is not the one it states.
"""


@dataclass(frozen=True)
class Findings:
    """Everything measured in one run: a line has the scores of one contender in one cell."""

    runs: int
    seconds: float  # that a peer's cell may take
    gains: list[Gain]
    lines: list[dict[str, object]]
    notes: list[str]

    def cells(self) -> list[Cell]:
        """Ours beside the peers'; an inertia is told as a multiple of scikit-learn's."""
        found: dict[Key, dict[str, tuple[float, ...]]] = {}
        for line in self.lines:
            if line["scores"]:
                key = line["task"], line["table"], float(line["epsilon"])
                found.setdefault(key, {})[line["who"]] = tuple(line["scores"])
        made = []
        for (task, table, epsilon), by in found.items():
            if OURS not in by:
                continue
            exact = found.get((task, table, 0.0), {}).get(EXACT, (float("nan"),))[0]
            unit = abs(exact) if task == "k-means" else 1.0
            scores = {who: Scores(who, tuple(score / unit for score in runs)) for who, runs in by.items()}
            own = scores.pop(OURS)
            made.append(Cell(task, table, epsilon, own, tuple(scores.values()), exact / unit))
        return sorted(made, key=lambda cell: (ORDER.index(cell.table), cell.epsilon))


@dataclass(frozen=True)
class Demand:
    """A demand on one table: what, ours and of how many runs, the bar, whether it is met (None: not run), others."""

    what: str
    ours: str
    runs: int
    bar: str
    met: bool | None
    others: str


def single(cells: list[Cell]) -> list[Demand]:
    """The demands on single tables."""
    by = {(cell.task, cell.table, cell.epsilon): cell for cell in cells}
    lines: list[Demand] = []

    def demand(key: Key, what: str, least: float | None = None, *, below: float | None = None) -> None:
        cell = by.get(key)
        if cell is None:
            return
        bar = least if least is not None else cell.exact - (below or 0.0)
        task, own = cell.task, cell.ours.mean
        peer = f"{cell.best.who} {_said(task, cell.best.mean)}; " if cell.best else ""
        others = f"{peer}scikit-learn {_said(task, cell.exact)}"
        lines.append(Demand(what, _said(task, own), len(cell.ours.runs), _said(task, bar), own >= bar, others))

    demand(("k-means", sets.MIXTURE, 1.0), "mixture, k-means: inertia as a multiple of the exact", -1.03)
    demand(("linear", sets.MIXTURE, 1.0), "mixture, logistic regression: accuracy", 0.984)
    demand(("tree", sets.MIXTURE, 1.0), f"mixture, tree of depth {tasks.DEPTH}: accuracy", 0.93)
    demand(("tree", "adult-train", 1.0), "adult-train, tree: within 2 points of the exact entropy tree", below=0.02)
    extra = by.get(("additive", "adult-train", 1.0))
    if extra:
        what = "adult-train, additive classifier at (1, 1e-6): AUC, within 1 point of DP-EBM"
        own, bar = extra.ours.mean, extra.best.mean - 0.01 if extra.best else None
        told = "interpret's DP-EBM" + (f" {extra.best.mean:.3f}" if extra.best else ": not run")
        met = None if bar is None else own >= bar
        lines.append(Demand(what, f"{own:.3f}", len(extra.ours.runs), "" if bar is None else f"{bar:.3f}", met, told))
    return lines


def _said(task: str, score: float) -> str:
    """A score as people read it: an inertia is better the smaller it is, so its score is negative."""
    return f"{-score if task == 'k-means' else score:.3f}"


def _of(task: str, scores: Scores | None, runs: int) -> str:
    if scores is None:
        return "none in time"
    few = f" ({len(scores.runs)} runs)" if len(scores.runs) != runs else ""
    return f"{_said(task, scores.mean)} ± {scores.slack:.3f}{few}"


def _verdict(cell: Cell) -> str:
    if cell.best is None:
        return ""
    if cell.gain > 0:
        return "ahead, few runs" if cell.few else "better"
    return "**lost**" if cell.lost else "behind" if cell.gain < 0 else "equal"


def page(found: Findings, minutes: float | None = None) -> str:
    """The page as Markdown; the minutes are told where everything was measured in one go."""
    cells = found.cells()
    counted = [cell for cell in cells if cell.task != "additive" and cell.table != sets.MIXTURE]
    verdict, alone = judge(counted), single(cells)
    relations = ", ".join(f"{task} {relation}" for task, relation in tasks.RELATIONS.items())
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = [
        "# Learning, measured",
        "",
        "`python -m benchmarks.learn`, a part of `make bench`, writes this page.",
        f"{today}{'' if minutes is None else f', {minutes:.0f} minutes'}. {_runs(cells, found.runs)}",
        "",
        "## Gains over the paper's constants",
        "",
        "| | paper | here | asked for | |",
        "|---|---:|---:|---:|---|",
        *(f"| {g.what} | {g.paper} | {g.now} | {g.least:g} | {_met(g.met)} |" for g in found.gains),
        "",
        "## Demands on single tables",
        "",
        "| epsilon 1 | sulq | its runs | bar | | others |",
        "|---|---:|---:|---:|---|---|",
        *(_demanded(line) for line in alone),
        "",
        "## Against diffprivlib 0.6.6",
        "",
        ABOUT.format(relations=relations, seconds=found.seconds, fewest=FEWEST),
        *(note for note in found.notes if note),
        "",
    ]
    if any(cell.best for cell in counted):
        rows += _told(verdict, found.runs)
    for task in tasks.RELATIONS:
        rows += _table(task, counted, found.runs)
    return "\n".join(rows) + "\n"


def _demanded(line: Demand) -> str:
    return f"| {line.what} | {line.ours} | {line.runs} | {line.bar} | {_met(line.met)} | {line.others} |"


def _runs(cells: list[Cell], runs: int) -> str:
    """How many runs there are, the smallest number told."""
    theirs = [len(cell.best.runs) for cell in cells if cell.best]
    told = f"{runs} runs a cell, but not in all: "
    told += f"{min((len(cell.ours.runs) for cell in cells), default=0)} in the cell where sulq has fewest"
    if theirs:
        told += f", {min(theirs)} where the peer has; in {len(cells) - len(theirs)} cells it has none"
    return told + "."


def _table(task: str, cells: list[Cell], runs: int) -> list[str]:
    """A task's cells under their head."""
    head = ["", f"### {task}", "", "| | epsilon | sulq | diffprivlib | scikit-learn | |", "|---|---|---|---|---|---|"]
    return head + [_row(cell, runs) for cell in cells if cell.task == task]


def _row(cell: Cell, runs: int) -> str:
    ours, theirs = (_of(cell.task, scores, runs) for scores in (cell.ours, cell.best))
    exact = _said(cell.task, cell.exact)
    return f"| {cell.table} | {cell.epsilon:g} | {ours} | {theirs} | {exact} | {_verdict(cell)} |"


def _told(verdict: Verdict, runs: int) -> list[str]:
    """The verdict over all cells; every cell in which the peer's mean is ahead is listed."""
    rows = [f"- {what}: {_met(ok)}" for what, ok in verdict.met.items()]
    rows += [
        f"- epsilon {epsilon:g}: better in {share:.0%} of {verdict.sizes[epsilon]} cells, "
        f"in the median by {verdict.medians[epsilon]:.3f}"
        for epsilon, share in verdict.shares.items()
    ]
    rows += [f"- {len(verdict.falls)} of {verdict.steps} steps from one epsilon to the next fall by more than that"]
    rows += [f"- {verdict.idle} cells of too few runs, or none of the peer's, decide nothing", ""]
    rows += [f"Lost, by more than {LIMIT:g} standard errors:" if verdict.lost else "No cell is lost.", ""]
    rows += [_ahead(cell, runs) for cell in verdict.lost]
    if verdict.behind:
        rows += ["", f"Behind, the peer's mean ahead by no more than {LIMIT:g}:", ""]
    rows += [_ahead(cell, runs) for cell in verdict.behind]
    if verdict.falls:
        rows += ["", "Falling as epsilon grows:", ""]
    return rows + [_fallen(low, high, runs) for low, high in verdict.falls]


def _fallen(low: Cell, high: Cell, runs: int) -> str:
    """A learner that is worse at the larger of two epsilons, and by how many standard errors."""
    before, after = (_of(cell.task, cell.ours, runs) for cell in (low, high))
    what = f"{low.task}, {low.table}: {before} at epsilon {low.epsilon:g}, {after} at {high.epsilon:g}"
    return f"- {what}, {fall(low, high):.1f} standard errors"


def _ahead(cell: Cell, runs: int) -> str:
    """A cell in which the peer's mean is ahead, and by how many standard errors."""
    ours, theirs = (_of(cell.task, scores, runs) for scores in (cell.ours, cell.best))
    what = f"{cell.task}, {cell.table}, epsilon {cell.epsilon:g}"
    return f"- {what}: {ours} against {theirs} ({cell.best.who}), {-cell.errors:.1f} standard errors"


def _met(met: bool | None) -> str:  # noqa: FBT001 - a word for it
    return "not run" if met is None else "met" if met else "**missed**"
