"""Private agnostic learning: of finitely many hypotheses one that errs hardly more often than the best (S3.28)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, number, whole
from sulq.language.kinds import Truth
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import Compare, Fill, RowFn, named
from sulq.language.score import Diagonal
from sulq.select.choose import EVERY, MOST
from sulq.select.selected import Selected, select

LARGEST: Final = 10**15


def agnostic(
    db: Oracle,
    hypotheses: list[str] | Mapping[str, RowFn],
    labels: str | RowFn,
    *,
    spend: Loss | None = None,
    progress: Progress | None = None,
) -> Selected:
    """Draw a hypothesis by the number of rows on which it errs; nothing else is released.

    A row on which a hypothesis says nothing counts as an error, and so does, for all of them, one without a label.
    Privacy: a row adds an error to some hypotheses and takes none from any: the span is one row under add_remove,
    two where one is exchanged for another; the plan finds it (SR5).
    Accuracy: with `agnostic_n` rows drawn independently the true error is within alpha of the best hypothesis's
    with probability 1 - beta; of the rows themselves, `within(beta)` errors more than the best [S3.28].
    Source: S3.28, Theorem 7 with the grouping of E39.

    Args:
        db: the database, or a far curator.
        hypotheses: columns of truth values; or from Python names with a condition each.
        labels: the column that is to be predicted, a truth value; or from Python a condition.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.

    Raises:
        QuestionError: `bad-parameter`, or `wrong-kind`: what is no truth value; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    schema = spending.facts.schema
    label = named(labels)
    told = _named(hypotheses)
    for fn in (label, *told.values()):
        if not isinstance(fn.kind(schema), Truth):
            raise QuestionError("wrong-kind", "Hypotheses and labels are truth values: Bool columns, conditions.")
    errors = tuple(Fill(Compare("!=", fn, label), value=True) for fn in told.values())
    question = Choose(Sums(errors, None, (EVERY,)), Diagonal((-1,) * len(errors)))
    return select(spending, question, tuple(told), Fraction(1), "number of rows told rightly")


def agnostic_n(hypotheses: int, alpha: float, beta: float, epsilon: float, rows: int = 1) -> int:
    """How many rows suffice: n >= max((8/alpha^2) ln(4|C|/beta), (4k/(epsilon alpha)) ln(2|C|/beta)).

    The first makes all empirical errors uniformly within alpha/4 of the true ones but for beta/2 (Hoeffding and a
    union bound); the second makes the chosen one's within alpha/2 of the best's but for beta/2 [S3.9], in every
    relation. ln|C| stands inside the product: n = O((ln|C| + ln(1/beta)) max{1/(epsilon alpha), 1/alpha^2}) (E39).

    Args:
        hypotheses: how many there are.
        alpha: how much more often than the best the chosen one may err.
        beta: the probability with which it may fail.
        epsilon: the spend.
        rows: how many rows a person has at most.
    """
    many, most = whole(hypotheses, "hypotheses", 1, LARGEST), whole(rows, "rows", 1, LARGEST)
    far, rate, spent = between(alpha, "alpha"), between(beta, "beta"), number(epsilon)
    checked(spent > 0, "epsilon is a positive number.")
    sampled = 8 / far**2 * math.log(4 * many / rate)
    private = 4 * most / (spent * far) * math.log(2 * many / rate)
    return math.ceil(max(sampled, private))


def _named(hypotheses: Sequence[str] | Mapping[str, RowFn]) -> dict[str, RowFn]:
    if isinstance(hypotheses, Mapping):
        told = dict(hypotheses)
    else:
        given = list(hypotheses) if isinstance(hypotheses, (list, tuple)) else []
        checked(all(isinstance(name, str) for name in given), "hypotheses are columns, or names with a condition each.")
        told = {name: named(name) for name in given}
    checked(all(isinstance(fn, RowFn) for fn in told.values()), "A hypothesis is a row function: sulq.col(...) > 3.")
    if not 1 <= len(told) <= MOST:
        raise QuestionError("too-large", f"There are 1 to {MOST:,} hypotheses; {len(told):,} are given.")
    return told
