"""Quantiles, extremes and distinct values: the asks whose answer is one of the values, or how many there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sulq.answers.answer import Answer
from sulq.answers.call import timed_asks
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import Oracle
from sulq.api.questions import By, Keys, Pay, Where
from sulq.api.relations import of_table
from sulq.language.privacy import Loss
from sulq.language.rowfn import RowFn, named
from sulq.sql.named_asks import count_distinct, parts, quantiles
from sulq.sql.released.program import Stat


@timed_asks
class OrderAsks(ABC):
    """The asks that are about the order of values, or which of them there are."""

    _oracle: Oracle

    @abstractmethod
    def _rows(self, where: Where) -> RowFn | None:
        """A condition as a row function."""

    @abstractmethod
    def _keys(self, by: By) -> Keys:
        """Names or row functions of a partition."""

    @of_table
    def quantile(
        self,
        value: object,
        q: float | Sequence[float],
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        interval: bool = True,
        sampling: bool = False,
    ) -> Answer:
        """Quantiles of a bounded number, as PERCENTILE_CONT does; several share one spend.

        One to three are chosen among the values of a public grid by rank, many are read from one tree of counts.
        `interval=False`: no part of the spend buys an interval, and what is chosen is nearer. `sampling`: all are read
        from a tree of counts, which tells how far a population's quantile may be too.
        """
        fn, wanted = named(value), parts(q)
        stats = [Stat("quantile_cont", (fn,), q=part) for part in wanted]
        names = tuple(f"{float(part):g}" for part in wanted)
        return quantiles(
            self._oracle, fn, stats, names,
            where=self._rows(where), by=self._keys(by), spend=spend, fresh=fresh, law=law, interval=interval,
            sampling=sampling,
        )  # fmt: skip

    @of_table
    def median(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        interval: bool = True,
        sampling: bool = False,
    ) -> Answer:
        """The median of a bounded number."""
        return self.quantile(
            value, 0.5, where=where, by=by, spend=spend, fresh=fresh, law=law, interval=interval, sampling=sampling
        )

    @of_table
    def min(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        interval: bool = True,
    ) -> Answer:
        """The smallest value of a bounded number."""
        return self._extreme(value, "min", where, by, Pay(spend, fresh=fresh, law=law), interval=interval)

    @of_table
    def max(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        interval: bool = True,
    ) -> Answer:
        """The largest value of a bounded number."""
        return self._extreme(value, "max", where, by, Pay(spend, fresh=fresh, law=law), interval=interval)

    @of_table
    def count_distinct(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """How many different values there are; of the person's column, how many people."""
        rows = self._rows(where)
        return count_distinct(
            self._oracle, named(value), where=rows, by=self._keys(by), spend=spend, fresh=fresh, law=law
        )

    def _extreme(self, value: object, name: str, where: Where, by: By, pay: Pay, *, interval: bool) -> Answer:
        fn = named(value)
        return quantiles(
            self._oracle, fn, [Stat(name, (fn,))], (name,),
            where=self._rows(where), by=self._keys(by), spend=pay.spend, fresh=pay.fresh, law=pay.law,
            interval=interval,
        )  # fmt: skip
