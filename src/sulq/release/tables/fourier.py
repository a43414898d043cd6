"""What `fourier` and `fourier-shift` make of noisy coefficients: a fitted table of whole counts, or a constant added.

The linear program of `fourier`: minimise t subject to |y_b - sum_g w_g f^b_g| <= t for every coefficient b, and w >= 0
[S3.18]. The optimum is no farther from the noisy coefficients than the true table is, so the fit at most doubles their
error [S3.19]. Where t is not zero there are many optima; a second program takes the one of the least total distance
among them, which costs nothing of the theorem and in measurements a third less error (docs/theory/contingency.md).

Both answers are vertices: the solver is a simplex method. The second program has |B| rows, hence at most |B| basic
variables and at most |B| cells that are not zero; of the first one's N + 1 tight constraints at most |B| are about
coefficients, hence the same. So rounding moves at most |B| cells by at most 1/2 each; an interior point has no such
bound (trap 6). Whatever the noisy numbers are, the programs are feasible and bounded, and nothing is drawn again. A
solver may still fail by its arithmetic: then others are tried, which end at a vertex too, and if none gets there no
table is made.

The constant of `fourier-shift` is so many rows, spread evenly, that a non-negative table very likely exists [S3.21].
Noise z_b on coefficient b moves each cell by at most |z_b| max|f_b| / length_b; adding S to the count of rows moves
each of N cells up by S/N. So S at or above the sum of |z_b| max|f_b| N/length_b leaves no cell below zero. The
constant is a quantile of that sum's *law*, known before anything is asked. A constant taken from the realised noise
would need the true coefficients, and would publish them (trap 6).
Accuracy: P(a cell is negative) <= beta. For equal Laplace noise the sum is a Gamma variable, |B| of scale b, plus at
most a unit each for whole numbers. For unequal Laplace noise its law is worked out on a grid, every term rounded up.
For normal noise Chernoff's bound: P(S >= s) <= exp(-u s) prod E exp(u |z_b|), least over u: above the quantile itself.
Even weights have the least constant at a price: sum s_b is least for given sum 1/s_b where all are equal. The best
weights are for the marginals, of which they lessen the error, and add 11% to the constant (ten attributes, all pairs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import highspy
import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.interactions import cells, farthest, lengths, own_sizes
from sulq.release.tables.noisy_tables import Coefficients

MAX_PROGRAM_NUMBERS: Final = 2**22  # cells times coefficients
DUST: Final = 1e-9  # of the largest cell: what the solver's arithmetic leaves of a zero
STRATEGIES: Final[tuple[Mapping[str, str | int], ...]] = (  # each ends at a vertex, an interior one by crossover
    {"solver": "simplex"},
    {"solver": "ipm", "run_crossover": "on"},
    {"solver": "simplex", "presolve": "off", "simplex_strategy": 4},
)
SLACK: Final = 1e-6  # of the distance: so that the second program holds the first one's answer
GRID_POINTS: Final = 2**16
MEAN_GROUPS: Final = 512  # of terms with about the same mean
BEYOND_GRID: Final = 1e-9


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


def shift(noise: Coefficients, beta: float) -> float:
    """How many rows to add; from the noise's law alone."""
    moves = []
    reaches: dict[tuple[int, ...], Floats] = {}
    for part, deviations in noise.deviations.items():
        own = own_sizes(part, noise.sizes)
        if own not in reaches:
            reaches[own] = farthest(own) * cells(part, noise.sizes) / lengths(own)
        moves.append(deviations * reaches[own])
    each = np.concatenate(moves)
    if noise.law != "laplace":
        return _chernoff(each, beta, _log_mean_normal, 8.0)
    if float(np.ptp(each)) <= 1e-9 * float(each.max()):
        return gamma_quantile(len(each), 1.0 - beta) * float(each[0]) / math.sqrt(2.0) + len(each)
    return _gridded(each / math.sqrt(2.0), beta) + len(each)


def gamma_quantile(shape: int, level: float) -> float:
    """What a sum of so many exponential variables of mean 1 stays below with probability `level`.

    P(sum > x) = exp(-x) (1 + x + ... + x^(shape-1)/(shape-1)!), found by bisection.
    """
    powers = np.arange(shape)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, shape)))])

    def above(x: float) -> float:
        return float(np.exp(powers * math.log(x) - x - factorials).sum())

    low, high = 1e-12, 10.0 * shape - 10.0 * math.log(1.0 - level)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 1.0 - level else (low, middle)
    return high


def _gridded(means: Floats, beta: float) -> float:
    """What a sum of exponential variables of these means passes with probability at most beta.

    Means and variables are rounded up to grids, so the sum is never taken for less than it is. A variable on a grid of
    step h is geometric, q = exp(-h/mean); the law of the sum is the inverse Fourier transform of the product of theirs.
    What lies beyond the grid's end has probability at most FAR, and is counted as above everything.
    """
    end = _chernoff(means * math.sqrt(2.0), BEYOND_GRID, _log_mean_laplace, 1.4)
    top = float(means.max())
    grouped, many = np.unique(np.ceil(means / top * MEAN_GROUPS) * (top / MEAN_GROUPS), return_counts=True)
    step = (end + len(means) * end / GRID_POINTS) / GRID_POINTS  # room for what the rounding adds
    angle = 2 * np.pi * np.arange(GRID_POINTS // 2 + 1) / GRID_POINTS
    cos, sin = np.cos(angle), np.sin(angle)
    size, turned = np.zeros(len(angle)), -len(means) * angle  # of the product: its modulus's logarithm, and its angle
    for mean, count in zip(grouped.tolist(), many.tolist(), strict=True):
        kept = math.exp(-step / mean)
        size += count * (math.log1p(-kept) - 0.5 * np.log(1.0 - 2.0 * kept * cos + kept * kept))
        turned -= count * np.arctan2(kept * sin, 1.0 - kept * cos)
    below = np.cumsum(np.fft.irfft(np.exp(size + 1j * turned), GRID_POINTS))
    reached = np.flatnonzero(1.0 - below + 2 * BEYOND_GRID <= beta)
    bound = _chernoff(means * math.sqrt(2.0), beta, _log_mean_laplace, 1.4)  # the less where terms outnumber the grid
    return min(float(reached[0] * step), bound) if len(reached) else bound


def _chernoff(each: Floats, beta: float, log_mean: Callable[[Floats], Floats], last: float) -> float:
    """The least of (sum of log E exp(u |z|) + log 1/beta)/u; any u gives a valid bound, so a grid of them will do."""
    tries = np.geomspace(last / 1e4, last, 400) / float(each.max())
    unlike, many = np.unique(each, return_counts=True)  # a few deviations stand for hundreds of coefficients
    step = max(1, GRID_POINTS // len(unlike))
    some = (tries[i : i + step] for i in range(0, len(tries), step))
    return float(min(((log_mean(u[:, None] * unlike) @ many - math.log(beta)) / u).min() for u in some))


def _log_mean_laplace(x: Floats) -> Floats:
    """Of |z|, z Laplace of deviation x, an exponential variable of mean x/sqrt 2: -log(1 - x/sqrt 2)."""
    return -np.log1p(-x / math.sqrt(2.0))


def _log_mean_normal(x: Floats) -> Floats:
    """Of |z|, z normal of deviation x: log(2 exp(x^2/2) Phi(x))."""
    below = np.array([math.erfc(-value / math.sqrt(2.0)) for value in x.ravel().tolist()]).reshape(x.shape)
    return np.asarray(x * x / 2 + np.log(below))
