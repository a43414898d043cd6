"""Numbers wider than 64 bits: exact at every size, clamped without wrapping, and as much work for all."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from sulq.kernel.scores import Wide, scores
from sulq.language.score import Contrast, Linear, NegAbs, Rank, form

LIMIT = 2**61
EDGES = [
    sign * (1 << bits) + more for bits in (0, 15, 16, 30, 31, 32, 47, 61) for sign in (1, -1) for more in (-1, 0, 1)
]
EDGES += [0, 2**62, -(2**62), 2**62 - 1, 1 - 2**62]


def clamp(value: int, limit: int = LIMIT) -> int:
    """What a number is clamped to."""
    return max(-limit, min(limit, value))


def test_numbers_come_back() -> None:
    """Every number of 62 bits, alone, added, taken away and multiplied, as whole numbers have it."""
    pairs = list(itertools.product(EDGES, EDGES))
    left, right = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    factors = np.clip(right, -(2**45), 2**45)
    for limit in (LIMIT, 2**62, 1000):
        assert Wide.of(left).clamped(limit).tolist() == [clamp(a, limit) for a, _ in pairs]
        assert (Wide.of(left) + Wide.of(right)).clamped(limit).tolist() == [clamp(a + b, limit) for a, b in pairs]
        assert (Wide.of(left) + Wide.of(right).times(-1)).clamped(limit).tolist() == [
            clamp(a - b, limit) for a, b in pairs
        ]
        found = Wide.of(left).times(factors)
        expected = [a * b for a, b in zip(left.tolist(), factors.tolist(), strict=True)]
        assert found.clamped(limit).tolist() == [clamp(n, limit) for n in expected]
        twice = (found.times(factors) + found.times(-factors) + Wide.of(left)).clamped(limit)
        assert twice.tolist() == [clamp(a, limit) for a, _ in pairs]


@pytest.mark.parametrize("bits", [3, 30, 62])
def test_products_and_totals_are_exact(bits: int) -> None:
    """Matrix products and running totals agree with whole numbers; where they cancel, too."""
    rng = np.random.default_rng(bits)
    for rows, terms, columns in ((1, 1, 1), (3, 7, 2), (5, 300, 4)):
        weights = rng.integers(-(2**31), 2**31 + 1, (rows, terms))
        numbers = rng.integers(-(2**bits), 2**bits, (terms, columns))
        if terms % 2:
            weights[:, -1], numbers[-1] = -weights[:, 0], numbers[0]  # two terms that cancel
        expected = weights.astype(object) @ numbers.astype(object)
        assert Wide.dot(weights, numbers).clamped(LIMIT).tolist() == [[clamp(n) for n in row] for row in expected]
        running = np.cumsum(numbers.astype(object), axis=1)
        assert Wide(np.cumsum(Wide.of(numbers).digits, axis=-1)).clamped(LIMIT).tolist() == [
            [clamp(n) for n in row] for row in running
        ]


def test_control_64_bits_wrap() -> None:
    """What 64 bits make of such a product is wrong; so the test above can fail."""
    weights, numbers = np.array([[2**31, 2**31]]), np.array([[2**40], [2**40]])
    with np.errstate(over="ignore"):
        assert (weights @ numbers).tolist() != [[2**72]]
    assert Wide.dot(weights, numbers).clamped(LIMIT).tolist() == [[LIMIT]]


@pytest.mark.parametrize("kind", ["linear", "contrast", "rank", "neg_abs"])
def test_all_sums_take_as_long_T34(kind: str) -> None:
    """Empty cells and sums beyond 64 bits are scored in the same time, within a factor of 3.

    In whole numbers of any size where 64 bits are not enough the large sums took 30 times as long.
    """
    rng = np.random.default_rng(1)
    weights = tuple(tuple(int(n) for n in row) for row in rng.integers(-(2**31), 2**31, (96, 96)))
    score = {
        "linear": Linear(weights),
        "neg_abs": NegAbs(weights),
        "contrast": Contrast((weights,)),
        "rank": Rank(2**30, 2**31 - 1, 5),
    }[kind]
    width = 64 if kind == "contrast" else 1
    cells = 40_000 if kind == "rank" else 96
    nothing, much = (np.full((1, cells, width), value, dtype=np.int64) for value in (0, 2**61 - 1))

    def quickest(sums: np.ndarray) -> float:
        times = []
        for _ in range(7):
            begun = time.perf_counter()
            scores(form(score), sums)
            times.append(time.perf_counter() - begun)
        return min(times)

    for _ in range(4):  # another process may take the machine from one of them
        ratio = quickest(much) / quickest(nothing)
        if 1 / 3 < ratio < 3:
            return
    pytest.fail(f"{kind}: {ratio:.1f} times as long")
