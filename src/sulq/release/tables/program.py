"""The linear program: a table of non-negative counts whose coefficients are nearest to the noisy ones.

Minimise t subject to |y_b - sum_g w_g f^b_g| <= t for every coefficient b, and w >= 0 [S3.18]. The optimum is no
farther from the noisy coefficients than the true table is, so the fit at most doubles their error [S3.19]. Where t is
not zero there are many optima; a second program takes the one of the least total distance among them, which costs
nothing of the theorem and in measurements a third less error (docs/theory/contingency.md).

Both answers are vertices: the solver is a simplex method. The second program has |B| rows, hence at most |B| basic
variables and at most |B| cells that are not zero; of the first one's N + 1 tight constraints at most |B| are about
coefficients, hence the same. So rounding moves at most |B| cells by at most 1/2 each; an interior point has no such
bound [T6]. Whatever the noisy numbers are, the programs are feasible and bounded, and nothing is drawn again. A solver
may still fail by its arithmetic: then others are tried, which end at a vertex too, and if none gets there no table is
made. All of it sees the noisy numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import highspy
import numpy as np

from sulq.language.kinds import Floats, Integers

LARGEST: Final = 2**22  # cells times coefficients
DUST: Final = 1e-9  # of the largest cell: what the solver's arithmetic leaves of a zero
STRATEGIES: Final[tuple[Mapping[str, str | int], ...]] = (  # each ends at a vertex, an interior one by crossover
    {"solver": "simplex"},
    {"solver": "ipm", "run_crossover": "on"},
    {"solver": "simplex", "presolve": "off", "simplex_strategy": 4},
)
SLACK: Final = 1e-6  # of the distance: so that the second program holds the first one's answer


def fitted(matrix: Integers, asked: Floats, noise: Floats) -> Floats | None:
    """The cells of the nearest table; `matrix` has a column a coefficient, `noise` is the unit of each one's error.

    None where no solver got to the optimum.
    """
    whole = noise.max()
    scaled, target = matrix / noise * whole, asked / noise * whole
    cells, count = scaled.shape
    found = _solved(_nearest(scaled, target))
    if not len(found):
        return None
    best, distance = found[:cells], found[-1]
    if distance > SLACK * whole:
        found = _solved(_closest(scaled, target, distance * (1 + SLACK)))
        best = found[:cells] if len(found) == cells + 2 * count else best
    best[best < DUST * max(best.max(initial=0.0), 1.0)] = 0.0
    return best


def _solved(model: highspy.HighsLp) -> Floats:
    """A vertex where the program is least; empty where no solver got there."""
    for strategy in STRATEGIES:
        found = _tried(model, strategy)
        if len(found):
            return found
    return np.zeros(0)


def _tried(model: highspy.HighsLp, strategy: Mapping[str, str | int]) -> Floats:
    """What one solver finds; empty where it did not get to the optimum."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, **strategy}.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    done = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found = np.array(solver.getSolution().col_value) if done else np.zeros(0)
    return found if np.isfinite(found).all() else np.zeros(0)


def _nearest(matrix: Floats, target: Floats) -> highspy.HighsLp:
    """Least t. Columns: cells, a gap for each coefficient, t. Rows: matrix' w + gap = target; -t <= gap <= t."""
    cells, count = matrix.shape
    far = highspy.kHighsInf
    gap = np.arange(count)
    return _model(
        cost=np.append(np.zeros(cells + count), 1.0),
        columns=(np.concatenate([np.zeros(cells), np.full(count, -far), [0.0]]), np.full(cells + count + 1, far)),
        rows=(
            np.concatenate([target, np.full(count, -far), np.zeros(count)]),
            np.concatenate([target, np.zeros(count), np.full(count, far)]),
        ),
        matrix=matrix,
        places=np.concatenate(
            [np.stack([gap, gap + count, gap + 2 * count], axis=1).ravel(), gap + count, gap + 2 * count]
        ),
        entries=np.concatenate([np.ones(3 * count), -np.ones(count), np.ones(count)]),
        lengths=np.append(np.full(count, 3), 2 * count),
    )


def _closest(matrix: Floats, target: Floats, distance: float) -> highspy.HighsLp:
    """Least sum of gaps within the distance. Columns: cells, gaps up, gaps down. Rows: matrix' w + gap = target."""
    cells, count = matrix.shape
    gap = np.arange(count)
    return _model(
        cost=np.append(np.zeros(cells), np.ones(2 * count)),
        columns=(
            np.zeros(cells + 2 * count),
            np.append(np.full(cells, highspy.kHighsInf), np.full(2 * count, distance)),
        ),
        rows=(target, target),
        matrix=matrix,
        places=np.append(gap, gap),
        entries=np.append(np.ones(count), -np.ones(count)),
        lengths=np.ones(2 * count, dtype=np.int64),
    )


def _model(
    *,
    cost: Floats,
    columns: tuple[Floats, Floats],
    rows: tuple[Floats, Floats],
    matrix: Floats,
    places: Integers,
    entries: Floats,
    lengths: Integers,
) -> highspy.HighsLp:
    """A program whose first columns are the cells', with `matrix` in the first rows; the other columns follow."""
    cell, place = np.nonzero(matrix)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(rows[0])
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = columns
    model.row_lower_, model.row_upper_ = rows
    long = np.concatenate([[0], np.cumsum(np.append(np.count_nonzero(matrix, axis=1), lengths))])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = long.astype(np.int32)
    model.a_matrix_.index_ = np.append(place, places).astype(np.int32)
    model.a_matrix_.value_ = np.append(matrix[cell, place], entries)
    return model
