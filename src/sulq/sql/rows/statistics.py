"""What a query wants to know of private rows: statistics of groups, before any of them is a question."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.language.relation import Relation
from sulq.language.rowfn import RowFn

# The families of statistics beside "rows" and "persons": each is asked for in its own way.
SPREADS: Final = ("var_pop", "var_samp", "std_pop", "std_samp")
MOMENTS: Final = ("count", "sum", "mean", *SPREADS)
PAIRS: Final = ("covar_pop", "covar_samp", "corr")
ORDERS: Final = ("min", "max", "quantile_cont", "quantile_disc")


@dataclass(frozen=True, slots=True, eq=False)
class Stat:
    """One statistic of each group's rows.

    `args`: none for "rows" (COUNT(*)) and "persons" (COUNT(DISTINCT person)), two for
    covariances and correlations, else one. `where`: its own FILTER. `distinct`:
    over the different values, each once. `q`: which quantile.
    """

    name: str
    args: tuple[RowFn, ...] = ()
    where: RowFn | None = None
    distinct: bool = False
    q: Fraction | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GroupStatistics:
    """Statistics of the groups of a relation's rows, for each of several grouping sets.

    `sets` names the keys of each grouping set by their places; () is one set of all keys.
    """

    over: Relation
    where: RowFn | None = None
    keys: tuple[RowFn, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    stats: tuple[Stat, ...] = ()
