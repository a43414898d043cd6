"""Marginals of one table: our exact error beside the least that Gaussian noise can have, and 100 attributes.

SULQ_DATA=... python -m benchmarks.epsilon marginals
"""

# ruff: noqa: PD011 - values here are NumPy's, not a frame's

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

import sulq
from benchmarks.epsilon.bars import Bar, Section
from sulq import Rho, release
from sulq.answers.oracle import SpendPlan
from sulq.release.space import ATTRIBUTES, CellSpace
from sulq.release.tables.allocation import MAX_HELD_NUMBERS
from sulq.release.tables.methods import Wish, method_of
from sulq.release.tables.noisy_tables import variance
from sulq.release.tables.ranges import counted
from sulq.release.tables.strategy import strategy

FOLDER: Final = Path(os.environ.get("SULQ_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "tabular"
GAP: Final = 1e-3  # within which the least worst variance is known
MAX_STEPS: Final = 20_000
MAX_LISTED: Final = 64  # values of a column that are categories
BINS: Final = {"adult-discrete": 100, "acs-ma2019": 8, "nltcs": 8}
RHO: Final = 0.5
ROWS: Final = 50_000  # of a generated table
BAR: Final = 1.02
SECONDS: Final = 300.0
SIZES: Final = (16, 32, 64, 100)  # of attributes that are read by ranges
WEIGHTS: Final = {"variance": "sum of variances", "worst": "worst variance"}
LEAST: Final = (
    "The ratio of our error to the least of any Gaussian mechanism at the same rho, which ResidualPlanner has: the sum "
    "of variances by its closed form, the worst by a convex program whose dual bounds it from below. Ours is exact, "
    'from the laws that the plan would draw: whole factors, whole noise and all, by `weights="variance"` and '
    '`"worst"`. adult-discrete has all its values (85, 100, 99, ... 2), acs-ma2019 the categories of its file and '
    "numbers in 8 intervals."
)
COSTS: Final = (
    "What whole factors and whole noise cost is what nltcs and the 100 attributes of 2 to 5 values show: at most "
    ".15%. The rest is of interactions whose lookup tables are too large and which are asked in the cells of "
    "their largest attribute, where that is at most 2% more than is needed. The tables of 100 attributes of 10 values "
    "have 40 million numbers: they are asked in the process, with some 4 GB of memory; a question that is sent over "
    "HTTP holds a tenth of them, and is then 1.063 of the least."
)
RANGES: Final = (
    "All ranges of one attribute: over the bound by the singular values of the ranges, which no Gaussian mechanism "
    "passes and the best ones come near to. Haar's vectors, by which `ranges` divides noise, are whole and stay so in "
    "marginals of many attributes; the best with a constant of its own, which these need, has 1.07."
)
Places = tuple[int, ...]
Columns = dict[str, object]


@dataclass(frozen=True)
class Optimum:
    """The least sum of the variances of all cells, and the least variance of the worst cell, at a price.

    Both are of the best Gaussian mechanism there is, ResidualPlanner's (XHZK23): the second is bounded from below, by
    duality, and a mechanism is known that is worse by no more than `gap`.
    """

    total: float
    worst: float
    gap: float


def optimum(sizes: tuple[int, ...], marginals: tuple[Places, ...], rho: float) -> Optimum:
    """By the closed form, and by maximising its dual over the weights of the marginals."""
    within = [[part for n in range(len(own) + 1) for part in itertools.combinations(own, n)] for own in marginals]
    at = {part: i for i, part in enumerate(sorted({part for own in within for part in own}))}
    width = np.array([math.prod(sizes[i] - 1 for i in part) for part in at], dtype=np.float64)
    cells = np.array([math.prod(sizes[i] for i in own) for own in marginals], dtype=np.float64)
    marginal, part = np.array([(i, at[part]) for i, own in enumerate(within) for part in own]).T

    def least(weight: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        """The least of the sum of weight times variance of a cell, and the variances of the mechanism that has it."""
        root = np.sqrt(np.bincount(part, (weight / cells**2)[marginal], len(at)))
        noise = (width * root).sum() / (2 * rho) / np.maximum(root, 1e-300)
        return float((width * root).sum() ** 2 / (2 * rho)), np.bincount(marginal, (width * noise)[part]) / cells**2

    total, _ = least(cells)
    weight, below, above = np.full(len(cells), 1.0 / len(cells)), 0.0, math.inf
    for _ in range(MAX_STEPS):
        found, variances = least(weight)
        below, above = max(below, found), min(above, float(variances.max()))
        if above <= (1 + GAP) * below:
            break
        weight = weight * np.sqrt(variances / variances.max())
        weight /= weight.sum()
    return Optimum(total, below, above / below - 1)


def declared(name: str) -> tuple[Columns, int]:
    """The columns of a real table, as a code book would have them, and how many intervals a number has."""
    told = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))["columns"]
    frame = pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False)
    found: Columns = {}
    for column, own in told.items():
        listed = sorted(map(str, own["values"])) if "values" in own else sorted(frame[column].unique())
        if "lower" in own:
            found[column] = sulq.Int(int(own["lower"]), int(own["upper"]))
        else:
            found[column] = sulq.Category(listed) if len(listed) <= MAX_LISTED else sulq.Int(0, 10**6)
    return found, BINS[name]


def generated(sizes: tuple[int, ...]) -> tuple[Columns, int]:
    """Columns x0, x1, ... of so many values each."""
    return {f"x{i}": sulq.Int(0, size - 1) for i, size in enumerate(sizes)}, max(sizes)


def foreseen(columns: Columns, bins: int, ways: int, weights: str) -> tuple[float, float, tuple[int, ...]]:
    """Of the design, as the plan has its noise: the sum of all cells' variances, the largest, and attributes' sizes."""
    names = list(columns)
    empty = pd.DataFrame({name: pd.Series(dtype="str") for name in names})
    with sulq.connect(empty, columns=columns, budget=Rho(10)) as db:
        spending = SpendPlan(db, Rho(RHO))
        space = CellSpace.of(names, spending.facts.schema, bins, ATTRIBUTES)
        marginals = tuple(itertools.combinations(range(len(names)), ways))
        wish = replace(Wish.by(spending, space, marginals, weights), most=MAX_HELD_NUMBERS)
        made = method_of("fourier-shift", wish)
        noise = made.foreseen(spending.foresee(made.question))
    total = worst = 0.0
    for own in marginals:
        each = variance(noise, own)
        total, worst = total + float(each.sum()), max(worst, float(each.max()))
    return total, worst, space.sizes


def compared(title: str, columns: Columns, bins: int, ways: int) -> Iterator[Bar]:
    """Both objectives, each by the weights that are for it."""
    for weights, objective in WEIGHTS.items():
        total, worst, sizes = foreseen(columns, bins, ways, weights)
        best = optimum(sizes, tuple(itertools.combinations(range(len(sizes)), ways)), RHO)
        ours, least = (total, best.total) if weights == "variance" else (worst, best.worst)
        kind = {2: "pairs", 3: "triples"}[ways]
        what = f"{title}: all {kind}, {objective}"
        print(what, ours / least, flush=True)
        yield Bar(what, f"{ours / least:.4f}", f"1 (least: {least:,.4g})", f"at most {BAR}", ours / least <= BAR)


def released(title: str, sizes: tuple[int, ...]) -> Iterator[Bar]:
    """All pairs of many attributes, asked and read, and whether the noise is what the standard errors say."""
    rng = np.random.default_rng(0)
    columns, bins = generated(sizes)
    frame = pd.DataFrame({name: rng.integers(0, size, ROWS) for name, size in zip(columns, sizes, strict=True)})
    with sulq.connect(frame, columns=columns, budget=Rho(10)) as db:
        db.prepare()
        began, worked = time.monotonic(), time.process_time()
        table = release.contingency(db, list(columns), ways=2, bins=bins, weights="variance", spend=Rho(RHO))
        found = {own: table.marginal(own) for own in itertools.combinations(columns, 2)}
        took, busy = time.monotonic() - began, time.process_time() - worked
    print(title, took, busy, table.method, flush=True)
    yield in_time(title, took, busy)
    off = []
    for (one, other), own in found.items():
        true = np.zeros(own.values.shape)
        np.add.at(true, (frame[one].to_numpy(), frame[other].to_numpy()), 1)
        off.append(float((((own.values - true) / own.standard_error) ** 2).mean()))
    share = float(np.mean(off))
    near = abs(share - 1) <= 0.05  # one release: marginals share attributes, and so noise
    yield Bar(f"{title}: mean square of errors over standard errors", f"{share:.3f}", "1", "0.95 to 1.05", near)


def in_time(title: str, took: float, busy: float) -> Bar:
    """Judged by the clock; beside it the processor's time, which other work on the machine changes least."""
    what, told = f"{title}: seconds to ask and read all pairs", f"{busy:.0f} of the processor"
    return Bar(what, f"{took:.0f}", told, f"at most {SECONDS:.0f}", took <= SECONDS)


def all_ranges(size: int) -> tuple[npt.NDArray[np.float64], float]:
    """All ranges of one attribute, and a bound below the sum of variances of any Gaussian mechanism, at rho 1/2."""
    ends = list(itertools.combinations_with_replacement(range(size), 2))
    work = np.array([[low <= i <= high for i in range(size)] for low, high in ends], dtype=np.float64)
    return work, float(np.sqrt(np.maximum(np.linalg.eigvalsh(work.T @ work), 0)).sum() ** 2 / size)


def planned_ranges(size: int) -> float:
    """The sum of variances over the bound where each range is a query of one plan."""
    work, least = all_ranges(size)
    found = strategy(work.astype(np.int64), np.arange(len(work)), np.ones(len(work)))
    return float(found.variances.sum() * (found.asked**2).sum(axis=0).max() / least)


def over_ranges(size: int, ranges: Places) -> float:
    """The sum of variances over the bound where an attribute's ranges are read from one release."""
    work, least = all_ranges(size)
    least /= 2 * RHO
    columns, bins = generated((size,))
    with sulq.connect(pd.DataFrame({"x0": [0]}), columns=columns, budget=Rho(10)) as db:
        spending = SpendPlan(db, Rho(RHO))
        space = CellSpace.of(["x0"], spending.facts.schema, bins, ATTRIBUTES)
        made = method_of("fourier-shift", Wish.by(spending, space, ((0,),), "variance", ranges))
        noise = made.foreseen(spending.foresee(made.question))
    whole = sum(counted(np.zeros(size), noise, (0,), [own > 0]).standard_error ** 2 for own in work)
    return float(whole / least)


def compared_ranges() -> Iterator[Bar]:
    """All ranges of one attribute: of one release, and as queries of a plan, which has another strategy."""
    for size in SIZES:
        found, without, planned = over_ranges(size, (0,)), over_ranges(size, ()), planned_ranges(size)
        what = f"all ranges of an attribute of {size} values, sum of variances"
        for how, ratio, beside in (
            ("`ranges=`", found, f"1 (bound); {without:.2f} without"),
            ("`db.plan`", planned, "1 (bound)"),
        ):
            yield Bar(f"{what}: {how}", f"{ratio:.4f}", beside, f"at most {BAR}", ratio <= BAR)


def run() -> Section:
    """Real tables, all pairs and triples; 100 generated attributes, all pairs."""
    bars: list[Bar] = []
    for name in ("nltcs", "adult-discrete", "acs-ma2019"):
        columns, bins = declared(name)
        for ways in (2, 3):
            bars += compared(f"{name}, {len(columns)} attributes", columns, bins, ways)
    mixed = tuple(np.random.default_rng(0).integers(2, 6, 100).tolist())
    for title, sizes in (("100 attributes of 2 to 5 values", mixed), ("100 attributes of 10 values", (10,) * 100)):
        bars += compared(title, *generated(sizes), 2)
        bars += released(title, sizes)
    bars += compared_ranges()
    return Section("Marginals planned together", bars, (LEAST, COSTS, RANGES))
