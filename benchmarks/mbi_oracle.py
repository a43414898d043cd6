"""The marginals that mbi's estimator asks for, faster where all of a small table's pairs or triples are measured.

mbi 2.0 takes any function from potentials to marginals. Its own spreads each potential over the whole table, one by
one; here the table is a matrix, half of the attributes by the other half, and all potentials are spread by one product

    log p = A T B',        marginals = A' p B,

where A and B say which values of every small set of attributes a half-row has, and T holds the potentials. It is the
same function to rounding (tests/test_benchmarks_release.py), so mbi's figures are mbi's own; only its runs are more.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST = 1 << 20  # entries of A or B: beyond, mbi's own way is as good

Clique = tuple[int, ...]
Table = npt.NDArray[np.float64]


def half(sizes: Sequence[int], places: range, order: int) -> tuple[Table, dict[Clique, tuple[int, int]]]:
    """Which values each half-row has, by sets of attributes; where each set's columns begin, and their number."""
    rows = np.indices([sizes[i] for i in places]).reshape(len(places), -1) if len(places) else np.zeros((0, 1), int)
    blocks, begins, at = [], {}, 0
    for clique in itertools.chain.from_iterable(itertools.combinations(places, k) for k in range(order + 1)):
        own = [sizes[i] for i in clique]
        size = int(np.prod(own, dtype=np.int64))
        codes = np.zeros(rows.shape[1], dtype=np.int64)
        for i, n in zip(clique, own, strict=True):
            codes = codes * n + rows[i - places.start]
        blocks.append(np.eye(size)[codes])
        begins[clique] = (at, size)
        at += size
    return np.concatenate(blocks, axis=1), begins


def fits(sizes: Sequence[int], order: int) -> bool:
    """Whether both halves are small enough."""
    middle = len(sizes) // 2
    return all(
        int(np.prod([sizes[i] for i in part]))
        * sum(int(np.prod([sizes[i] for i in c])) for k in range(order + 1) for c in itertools.combinations(part, k))
        <= LARGEST
        for part in (range(middle), range(middle, len(sizes)))
    )


@functools.cache
def matrices(sizes: tuple[int, ...], cliques: tuple[Clique, ...]) -> tuple[Table, Table, npt.NDArray[np.int64]]:
    """A and B, and where in T the values of these sets' potentials stand, one set after the other."""
    middle, order = len(sizes) // 2, max(map(len, cliques))
    left, lefts = half(sizes, range(middle), order)
    right, rights = half(sizes, range(middle, len(sizes)), order)
    places = []
    for clique in cliques:
        row, rows = lefts[tuple(i for i in clique if i < middle)]
        column, columns = rights[tuple(i for i in clique if i >= middle)]
        places.append(((row + np.arange(rows))[:, None] * right.shape[1] + column + np.arange(columns)).ravel())
    return left, right, np.concatenate(places)


def marginals(potentials: Any, total: Any = 1.0, *, constraints: Any = ()) -> Any:
    """What mbi asks of an oracle: the marginals of the table exp(sum of potentials), scaled to a total."""
    import jax
    import jax.numpy as jnp
    from mbi import CliqueVector, Factor

    assert not constraints
    domain, cliques = potentials.domain, potentials.cliques
    places = tuple(tuple(domain.attributes.index(name) for name in clique) for clique in cliques)
    assert all(place == tuple(sorted(place)) for place in places)
    a, b, where = matrices(tuple(domain.shape), places)
    tables = [potentials[clique].values for clique in cliques]
    spread = jnp.zeros(a.shape[1] * b.shape[1]).at[where].add(jnp.concatenate([table.ravel() for table in tables]))
    log = a @ spread.reshape(a.shape[1], b.shape[1]) @ b.T
    whole = jnp.exp(log - jax.scipy.special.logsumexp(log)) * total
    ends = np.cumsum([table.size for table in tables])[:-1]
    found = jnp.split((a.T @ whole @ b).ravel()[where], ends)
    return CliqueVector(
        domain,
        cliques,
        {
            clique: Factor(potentials[clique].domain, values.reshape(table.shape))
            for clique, values, table in zip(cliques, found, tables, strict=True)
        },
    )


@functools.cache
def oracle(sizes: tuple[int, ...], order: int) -> Any:
    """The function for mbi's estimator, compiled; None, which is mbi's own, where the halves are too large."""
    import jax

    return jax.jit(marginals) if fits(sizes, order) else None


def table(model: Any) -> Table:
    """The whole table of a fitted model: its own projections, one compiled program each, take longer than the fit."""
    domain = model.potentials.domain
    log = np.zeros(domain.shape)
    for clique in model.potentials.cliques:
        values = np.asarray(model.potentials[clique].values)
        places = [domain.attributes.index(name) for name in clique]
        assert places == sorted(places)
        log += values.reshape([n if i in places else 1 for i, n in enumerate(domain.shape)])
    found = np.exp(log - log.max())
    return np.asarray(found * (float(model.total) / found.sum()))
