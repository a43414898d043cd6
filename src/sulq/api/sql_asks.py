"""SQL as an analyst types it: one query, its explanation, and a total divided over several."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sulq.answers.auto_bounds import Bounds
from sulq.answers.call import timed_asks
from sulq.answers.law_choice import LawName
from sulq.language.privacy import Loss
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation
from sulq.sql.session import Sql, Within
from sulq.sql.workload import Workload

if TYPE_CHECKING:
    from sulq.answers.oracle import Progress
    from sulq.release.report import PublishedReport, ReportSpec


@timed_asks
class SqlAsks:
    """The asks that are SQL texts."""

    _sql: Sql

    def sql(
        self,
        text: str,
        *,
        spend: Loss | None = None,
        within: Within = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        other: str | None = None,
        law: LawName | None = None,
        timeout: float | None = None,
        bounds: Bounds | None = None,
        interval: bool = True,
    ) -> SqlAnswer | Explanation:
        """Answer one SELECT, an error bar on every cell; EXPLAIN SELECT is explained instead, free.

        Args:
            text: the query, in PostgreSQL's way.
            spend: what to pay.
            within: instead, how accurate the columns must be: a width, or {column: width}.
            beta: the probability with which a width may fail.
            at_most: with `within`, what the price may be at most.
            fresh: new noise at full price, although the same was answered before.
            other: where groups of too few people are not shown, the label of a row for all of them together.
            law: "laplace" or "gaussian", where the price leaves that open; by default the one of least foreseen error.
            bounds: "auto": where the values of sums and means lie is searched for first, from the same spend.
            interval: whether intervals of chosen quantiles are bought; without them the quantiles are nearer.
            timeout: for how many seconds to wait; what was charged by then stays so, and its answer is kept.
        """
        return self._sql.ask(
            text, spend=spend, within=within, beta=beta, at_most=at_most,
            fresh=fresh, other=other, law=law, bounds=bounds, interval=interval,
        )  # fmt: skip

    def explain(
        self,
        text: str,
        *,
        spend: Loss | None = None,
        within: Within = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        other: str | None = None,
        law: LawName | None = None,
        bounds: Bounds | None = None,
        interval: bool = True,
    ) -> Explanation:
        """What a query would ask, why it costs that, and how accurate it would be; spends nothing, reads no row."""
        return self._sql.explain(
            text,
            spend=spend,
            within=within,
            beta=beta,
            at_most=at_most,
            other=other,
            law=law,
            bounds=bounds,
            interval=interval,
        )

    def plan(
        self,
        queries: Sequence[str],
        *,
        spend: Loss,
        beta: float = 0.05,
        known: Sequence[SqlAnswer | None] = (),
        law: LawName | None = None,
        weights: Sequence[float] | None = None,
        interval: bool = True,
    ) -> Workload:
        """Divide a total over queries so that their mean relative error is least; spends nothing.

        An error is measured by how large a typical answer is, by the declared bounds and size; an answer that is
        `known` already (one, or None, for each query) tells by its own error bars and price, and nothing if it was
        free. No query gets less than half of an even part. `weights`: how much each query's error counts, a positive
        number for each; then half of what the weights alone would give. `interval`: as of `sql`, for all queries.
        """
        return self._sql.plan(queries, spend=spend, beta=beta, known=known, law=law, weights=weights, interval=interval)

    def report(
        self,
        spec: ReportSpec | Mapping[str, object] | str | Path,
        *,
        spend: Loss | None = None,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> PublishedReport:
        """Answer all tables of a report at one debit; `.save(folder)` writes a page to read or print, and CSV files.

        Args:
            spec: a TOML file, or a mapping of its form (docs/guide/release/report.md).
            spend: of all tables together, in place of the specification's.
            progress: called with how many parts are done, and how many there are.
            timeout: seconds to wait; what was charged by then stays charged, and is said.
        """
        make = importlib.import_module("sulq.release.report").report
        made = make(self, spec, spend=spend, progress=progress, timeout=timeout)
        return cast("PublishedReport", made)
