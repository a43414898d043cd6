"""The best numbers to ask for given counts, against bounds that no Gaussian noise passes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.epsilon.marginals import optimum
from sulq.release.tables.strategy import strategy
from tests.release.tables.test_allocation import pairs, workload


def price(asked: np.ndarray) -> int:
    """What a row of the table moves, squared, at most."""
    return int((asked**2).sum(axis=0).max())


def test_a_strategy_reads_every_count_without_bias_and_asks_whole_numbers() -> None:
    """Counts that depend on each other, cells that none needs: reading what is asked gives the counts back exactly."""
    counts = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0]])
    found = strategy(counts, np.arange(5), np.array([1.0, 2.0, 3.0, 1.0, 0.1]))
    assert found.asked.dtype == np.int64
    assert np.allclose(found.reads @ found.asked, counts, atol=1e-9)
    assert not found.asked[:, 4].any()


@pytest.mark.parametrize("size", [16, 64])
def test_all_ranges_come_near_to_the_bound_by_singular_values(size: int) -> None:
    """Within a tenth for the worst range's weights; Haar's vectors are a fifth to two fifths above it."""
    ends = itertools.combinations_with_replacement(range(size), 2)
    work = np.array([[low <= i <= high for i in range(size)] for low, high in ends], dtype=np.int64)
    least = np.sqrt(np.maximum(np.linalg.eigvalsh(work.T @ work), 0)).sum() ** 2 / size
    found = strategy(work, np.zeros(len(work), dtype=np.int64), np.ones(1))
    ratio = float(found.variances.sum()) * price(found.asked) / least
    assert 1 - 1e-6 <= ratio <= 1.1
    assert work.sum() > 1.1 * least  # the control: cells asked by themselves, as many draws as a range has


def test_pairs_of_a_table_have_the_worst_variance_of_the_closed_form() -> None:
    """All pairs as one query: the largest variance of a cell is the least there is, within a hundredth."""
    sizes = (3, 4, 2)
    work = np.concatenate(workload(sizes, pairs(sizes))).astype(np.int64)
    found = strategy(work, np.zeros(len(work), dtype=np.int64), np.ones(1))
    worst = float(found.variances.max()) * price(found.asked)
    least = optimum(sizes, pairs(sizes), 0.5).worst
    assert least * (1 - 1e-3) <= worst <= 1.01 * least
    assert len(pairs(sizes)) > 1.01 * least  # the control: each pair by itself, a third of the price each
