"""Regressions and tests as an analyst types them: tables of estimates that count noise and sampling.

The methods are thin; what they do is in `sulq.inference`, which is loaded when one of them is first called.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from sulq.answers.call import timed_asks
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import Oracle
from sulq.api.questions import Where
from sulq.api.relations import of_table
from sulq.language.privacy import Loss
from sulq.language.rowfn import RowFn

if TYPE_CHECKING:
    from sulq.inference.chi_squared import ChiSquareTest
    from sulq.inference.result import EstimateTable


@timed_asks
class InferenceAsks(ABC):
    """The asks whose answers have standard errors."""

    _oracle: Oracle

    @abstractmethod
    def _rows(self, where: Where) -> RowFn | None:
        """A condition as a row function."""

    @of_table
    def ols(
        self,
        y: object,
        x: Sequence[object] | Mapping[str, object] | object,
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        level: float = 0.95,
        law: LawName | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> EstimateTable:
        """Least squares of a number on columns, with standard errors that count noise and sampling.

        Args:
            y: what is explained: a number or a truth value.
            x: columns or row functions, or a mapping from names to them; a category is an indicator for each label but
                the first.
            where: rows that count; those that lack a value count nothing.
            table: of several tables, the one that is asked about.
            spend: what to pay; a tenth of it buys the spread of the residuals.
            level: of the intervals.
            law: "laplace" or "gaussian", where the price leaves that open.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds it is waited for.
        """
        return cast(
            "EstimateTable",
            _asked(
                "regression.least_squares",
                self._oracle,
                y,
                x,
                terms=_Terms(self._rows(where), spend, law, fresh, level),
            ),
        )

    @of_table
    def logit(
        self,
        y: object,
        x: Sequence[object] | Mapping[str, object] | object,
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        level: float = 0.95,
        law: LawName | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> EstimateTable:
        """Logistic regression of a truth value on columns, with standard errors that count noise and sampling.

        Args:
            y: what is explained: a truth value or a condition.
            x: columns or row functions, or a mapping from names to them; a category is an indicator for each label but
                the first.
            where: rows that count; those that lack a value count nothing.
            table: of several tables, the one that is asked about.
            spend: what to pay, for three questions.
            level: of the intervals.
            law: "laplace" or "gaussian", where the price leaves that open.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds it is waited for.
        """
        return cast(
            "EstimateTable",
            _asked(
                "logistic.logistic_regression",
                self._oracle,
                y,
                x,
                terms=_Terms(self._rows(where), spend, law, fresh, level),
            ),
        )

    @of_table
    def ttest(
        self,
        value: object,
        by: object = None,
        *,
        groups: Sequence[object] | None = None,
        paired: object = None,
        mean: float = 0.0,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        level: float = 0.95,
        law: LawName | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> EstimateTable:
        """Whether two groups have one mean (Welch), or one group a given one.

        Args:
            value: a bounded number.
            by: what divides the rows into two groups: a category or a condition; without it all rows are one group.
            groups: the two labels that are compared, where there are more; the first less the second.
            paired: another number of the same row: the mean of the difference is tested.
            mean: the mean that one group is tested against.
            where: rows that count.
            table: of several tables, the one that is asked about.
            spend: what to pay.
            level: of the intervals.
            law: "laplace" or "gaussian", where the price leaves that open.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds it is waited for.
        """
        found = _asked(
            "means.t_test",
            self._oracle,
            value,
            by,
            groups=groups,
            paired=paired,
            mean=mean,
            terms=_Terms(self._rows(where), spend, law, fresh, level),
        )
        return cast("EstimateTable", found)

    @of_table
    def proportions(
        self,
        success: object,
        by: object = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        level: float = 0.95,
        law: LawName | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> EstimateTable:
        """The proportion of rows for which a condition holds, by group, with difference and lift beside the first.

        Args:
            success: a truth value or a condition.
            by: what divides the rows: a category or a condition.
            groups: the labels that are compared, the first of them with each other one.
            where: rows that count.
            table: of several tables, the one that is asked about.
            spend: what to pay.
            level: of the intervals.
            law: "laplace" or "gaussian", where the price leaves that open.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds it is waited for.
        """
        return cast(
            "EstimateTable",
            _asked(
                "rates.proportions",
                self._oracle,
                success,
                by,
                groups=groups,
                terms=_Terms(self._rows(where), spend, law, fresh, level),
            ),
        )

    @of_table
    def chi2(
        self,
        columns: Sequence[object] | object,
        *,
        expected: Mapping[object, float] | Sequence[float] | None = None,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        law: LawName | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> ChiSquareTest:
        """Whether two keys are independent, or the labels of one have given proportions.

        Args:
            columns: two categories or conditions, or one.
            expected: of one, the proportion of each label; alike if left out.
            where: rows that count.
            table: of several tables, the one that is asked about.
            spend: what to pay.
            law: "laplace" or "gaussian", where the price leaves that open.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds it is waited for.
        """
        return cast(
            "ChiSquareTest",
            _asked(
                "chi_squared.chi_squared",
                self._oracle,
                columns,
                expected=expected,
                terms=_Terms(self._rows(where), spend, law, fresh),
            ),
        )


class _Terms(NamedTuple):
    """What every inference takes; `sulq.inference.purchase.InferenceTerms` checks it."""

    where: Where
    spend: Loss | None
    law: LawName | None
    fresh: bool
    level: float = 0.95


def _asked(name: str, *about: object, terms: _Terms, **more: object) -> object:
    """Ask a function of the inference room, loaded when it is needed."""
    module, _, function = name.partition(".")
    checked = importlib.import_module("sulq.inference.purchase").InferenceTerms(*terms)
    return getattr(importlib.import_module(f"sulq.inference.{module}"), function)(*about, **more, terms=checked)
