"""SVD and PCA of a table whose columns lie in several databases that share only the people's key.

Each database sums its columns over the same random groups of people, named by a public hash of the person (SR11); how
such sums vary together from group to group tells how the columns do from person to person. docs/theory/vertical.md has
the proof. No database ever sees a row of another's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final, Literal, Self

import numpy as np

from sulq.answers.call import timed
from sulq.answers.oracle import GRAIN, ColumnChoice, Oracle, Progress, SpendPlan, affordable, queries
from sulq.answers.readings.noise_sums import covariance, covariance_errors
from sulq.display.progress import shows_progress
from sulq.errors import BudgetExceeded, QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear
from sulq.language.question import Question, Sums, Together
from sulq.language.rowfn import Outer, Power, Vector, bucket
from sulq.learn.base import HANDLES
from sulq.learn.features import Features
from sulq.learn.noisy_sums import deviations, divisor_of, symmetric
from sulq.learn.unsupervised import components
from sulq.learn.unsupervised.components import Projection
from sulq.learn.unsupervised.moments import Moments
from sulq.learn.unsupervised.space import BITS, ColumnSpace, present, with_count

MOMENT_SHARES: Final = (Fraction(1), Fraction(4), Fraction(10))  # number, sums, products
MAX_SUMS_A_QUESTION: Final = 4000  # sums in one question
MAX_GROUPS: Final = 2**14  # groups
LOOK_PART: Final = Fraction(1, 3)  # of a database's part, for its own moments
USUAL_HALVES: Final = 400  # random halves of the people, unless another number is asked for
Method = Literal["auto", "cells", "subsets"]


@dataclass(frozen=True, slots=True)
class Holder:
    """One database's part of the columns."""

    space: ColumnSpace
    spending: SpendPlan
    places: slice  # of its coordinates among all

    @property
    def unknown(self) -> int:
        """How many values ask for its number of rows: one, none where that is public."""
        return int(self.spending.facts.size is None)

    @property
    def low(self) -> Floats:
        """The lower ends of the bounds, from which the papers count."""
        return self.space.middle - self.space.half

    @property
    def unit(self) -> Floats:
        """The units its sums over groups are asked in."""
        return self.space.even(pure=self.spending.pure)

    def moments(self) -> Sums:
        """Its number of rows, sums, and the products of its own columns, about the middle of the bounds."""
        vector = self.space.vector(self.space.middle)
        return with_count(self.spending, MOMENT_SHARES, vector, Outer(vector), counted=vector)

    def groups(self, number: int, salt: int) -> Sums:
        """Its sums over random groups of people."""
        return Sums((self.space.vector(self.space.middle, self.unit),), by=(bucket(number, salt),))

    def totals(self) -> Together:
        """Its sums and squares over all people, as the papers ask for them: two queries a column [S0.12]."""
        rows = self.space.rows(self.low)
        vector = Vector(rows, BITS)
        squares = Vector(tuple(Power(row, 2) for row in rows), BITS)
        return Together((Sums((vector,)), Sums((squares,)), *(Sums((present(vector),)),) * self.unknown))

    def halves(self, number: int, salt: int) -> list[Together]:
        """Its sums over random halves of the people: a query a column and half."""
        vector = self.space.vector(self.low)
        sums = [Sums((vector,), bucket(2, salt + i) == 0) for i in range(number)]
        return [Together(tuple(sums[i : i + MAX_SUMS_A_QUESTION])) for i in range(0, number, MAX_SUMS_A_QUESTION)]


def open_all(
    X: object, spend: Loss | None, progress: Progress | None, *, scale: bool
) -> tuple[list[Holder], list[tuple[str, Column]]]:
    """The databases with their columns and their parts of the spend, by columns; refused where one cannot pay.

    Databases of one ledger are one person space: it must hold all their parts (SR20).
    """
    groups: dict[int, list[ColumnChoice]] = {}
    for handle in _columns(X):
        groups.setdefault(id(handle.oracle), []).append(handle)
    oracles = [handles[0].oracle for handles in groups.values()]
    pairs = [[pair for h in handles for pair in zip(h.names, h.domain, strict=True)] for handles in groups.values()]
    named = [pair for found in pairs for pair in found]
    if len({name for name, _ in named}) != len(named):
        raise QuestionError("bad-question", "Two of the columns have one name; a model could not tell them apart.")
    spaces = [ColumnSpace(Features(found), scale=scale) for found in pairs]
    width = sum(len(space) for space in spaces)
    shares = [_share(oracle, spend, Fraction(len(s), width)) for oracle, s in zip(oracles, spaces, strict=True)]
    if len({type(share) for share in shares}) > 1:
        raise QuestionError("spend-kind", "The databases' budgets are of kinds that do not add up.")
    _afford(oracles, shares)
    holders: list[Holder] = []
    for oracle, space, share in zip(oracles, spaces, shares, strict=True):
        at = holders[-1].places.stop if holders else 0
        holders.append(Holder(space, SpendPlan(oracle, share, progress), slice(at, at + len(space))))
    return holders, named


def afford(holders: Sequence[Holder], asked: Sequence[Sequence[Question]]) -> None:
    """Refuse, before the first ask, queries that a ledger does not hold for all of its databases together (SR20)."""
    needed: dict[object, int] = {}
    for holder, questions in zip(holders, asked, strict=True):
        facts = holder.spending.facts
        if not isinstance(facts.remaining, Queries):
            return
        space = facts.public_key or id(holder.spending.oracle)
        needed[space] = needed.get(space, 0) + sum(queries(holder.spending.oracle, question) for question in questions)
        if needed[space] > facts.remaining.queries:
            raise BudgetExceeded(
                "budget-exceeded", f"This fit would ask {needed[space]:,} queries; {facts.remaining} is left."
            )


def spent(holders: list[Holder]) -> Loss:
    """What a person lost in all databases together."""
    losses = [holder.spending.spent for holder in holders]
    if isinstance(losses[0], Queries):
        return Queries(sum(loss.queries for loss in losses if isinstance(loss, Queries)))
    kind = Rho if isinstance(losses[0], Rho) else Epsilon
    return kind.total(sum((loss.exact for loss in losses if isinstance(loss, (Epsilon, Rho))), start=Fraction(0)))


def _columns(X: object) -> list[ColumnChoice]:
    listed = list(X) if isinstance(X, (list, tuple)) else [X]
    if not listed or not all(isinstance(item, ColumnChoice) for item in listed):
        raise QuestionError("bad-question", "Give a list of private columns, some of each database.", HANDLES)
    return [item for item in listed if isinstance(item, ColumnChoice)]


def _share(oracle: Oracle, spend: Loss | None, part: Fraction) -> Epsilon | Rho | None:
    """A database's part of the spend; none under a SubLinear budget."""
    if isinstance(oracle.facts.budget, SubLinear):
        return None
    whole = Rho(oracle.facts.counted(spend).rho) if isinstance(spend, EpsilonDelta) else spend
    if not isinstance(whole, (Epsilon, Rho)):
        return SpendPlan(oracle, spend).share(part)  # refused, with the reason
    return type(whole)(Fraction(math.floor(whole.exact * part * GRAIN), GRAIN))


def _afford(oracles: list[Oracle], shares: list[Epsilon | Rho | None]) -> None:
    """Refuse before the first ask what a ledger that several databases share cannot hold."""
    spaces: dict[object, list[tuple[Oracle, Epsilon | Rho]]] = {}
    for oracle, share in zip(oracles, shares, strict=True):
        if share is not None:
            spaces.setdefault(oracle.facts.public_key or id(oracle), []).append((oracle, share))
    for parts in spaces.values():
        total = sum((Fraction(share.exact) for _, share in parts), start=Fraction(0))
        affordable(type(parts[0][1])(total), parts[0][0].facts)


def from_cells(sums: Floats) -> Floats:
    """Sums over all people of the products of columns, from their sums over random groups: a row a group.

    Of m groups: m/(m - 1) times the sum over them of (a_i - mean)(a_j - mean). Unbiased where the noises of two columns
    are independent: products of group sums have an expectation of P(1 - 1/m) + T_i T_j/m, P the wanted sum and T the
    totals, and the means take the last term away.
    """
    return len(sums) * covariance(sums, sums)


def from_subsets(sums: Floats) -> Floats:
    """The same from sums over random halves of the people, a row a subset [S0.12].

    4/(t - 1) times the sum of (a_i - mean)(a_j - mean): subset sums have a covariance of a quarter of the wanted sum.
    """
    return 4 * covariance(sums, sums)


def standard_errors(moments: Floats, variances: Floats, n: float, groups: int, *, factor: float) -> Floats:
    """The standard error of each average product: sqrt((m_ii + fR_i/n)(m_jj + fR_j/n) + m_ij^2)/sqrt(g - 1) [S0.12].

    `moments`: the average products m. `variances`: R, of the noise in a sum of each column. `factor`: f, 4 for random
    halves, for disjoint groups their number: by it the noise is counted once for all rows of a group.
    """
    own = np.maximum(np.diag(moments), 0.0) + factor * variances / n
    return covariance_errors(own, own, moments, groups)


def best_number(squares: Floats, variances: Floats, n: float) -> int:
    """How many groups make the standard errors smallest: with so many, noise is as large as the rows' own products.

    (m_ii + gR/n)/sqrt(g) is least at g = n m_ii/R; of several columns the geometric mean.
    """
    ratio = np.maximum(squares, 1e-300) / np.maximum(variances, 1e-300)
    wish = n * math.exp(float(np.log(ratio).mean()))
    return int(min(max(wish, 2.0), MAX_GROUPS))


@dataclass(frozen=True, slots=True)
class Found:
    """Average products about an origin, and how far off they may be."""

    count: float
    origin: Floats
    away: Floats  # the mean, about the origin
    products: Floats
    errors: Floats
    reach: Floats  # how far a row may be from the origin, by column

    def moments(self, products: Floats) -> Moments:
        """As the learners of one database take them."""
        places = np.arange(len(self.origin))
        noise, reach = float(self.errors.max()), float(np.linalg.norm(self.reach))
        return Moments(self.count, self.origin + self.away, products, noise, places, reach)


@dataclass(eq=False, repr=False)
class VerticalProjection(Projection):
    """What both learners of this module share: their parameters, and how the databases are asked."""

    n_components: int = 2
    _: KW_ONLY
    cells: int | None = None
    method: Method = "auto"
    salt: int = 0
    scale: bool = False

    @shows_progress
    @timed
    def fit(  # type: ignore[override]
        self,
        X: Sequence[ColumnChoice],
        y: None = None,
        *,
        spend: Loss | None = None,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Learn from columns of several databases: `model.fit([one[["a", "b"]], other["c"]], spend=Epsilon(1))`.

        Args:
            X: Columns of each database, in a list; each opened with a Unit on the key they share.
            y: Nothing.
            spend: What all databases together may be charged, divided among them by columns.
            progress: Called with the steps done and the steps planned, of each database.
            timeout: For how many seconds it may go on; what was charged by then stays charged.

        Raises:
            QuestionError: The parameters or the columns do not fit; nothing was spent.
            BudgetExceeded: A database, or a ledger that several share, cannot pay its part; nothing was spent.
        """
        checked(isinstance(self.scale, bool), "scale is True or False.")
        checked(self.method in ("auto", "cells", "subsets"), "method is auto, cells or subsets.")
        salt = whole(self.salt, "salt", -(2**40), 2**40)
        number = None if self.cells is None else whole(self.cells, "cells", 2, MAX_GROUPS)
        holders, named = open_all(X, spend, progress, scale=self.scale)
        features = Features(named)
        k = self._dimension(features)
        papers = self.method == "subsets" or (self.method == "auto" and holders[0].spending.sublinear)
        checked(
            papers or number is not None or not holders[0].spending.sublinear,
            "Where queries are counted, say how many groups are asked: cells=...",
        )
        found = by_subsets(holders, number or USUAL_HALVES, salt) if papers else by_cells(holders, number, salt)
        self._learn_from(found, k)
        self._features = features
        self.errors_ = found.errors
        self.spent_ = spent(holders)
        self.unit_ = holders[0].spending.facts.unit
        self.guarantee_ = holders[0].spending.guarantee
        self.feature_names_in_ = tuple(name for name, _ in named)
        self.n_features_in_ = len(named)
        return self

    def _learn_from(self, found: Found, k: int) -> None:
        raise NotImplementedError


class SVD(VerticalProjection, components.SVD):
    """SVD of columns that lie in several databases, which share only the key of their people.

    Each database answers for its own columns; products of columns of two databases are estimated from their sums
    over random groups of people. All else, and the parameters, as for `PCA` of this module.

    Source: DN04 as in BDMN05, section 4.1 (S0.10, S0.12).
    """

    def _learn_from(self, found: Found, k: int) -> None:
        mixed = np.outer(found.origin, found.away)
        matrix = found.products + mixed + mixed.T + np.outer(found.origin, found.origin)
        self._directions(matrix * found.count, k)
        self.noise_ = float(found.errors.max()) * found.count
        self.mean_ = np.zeros(len(found.origin))


class PCA(VerticalProjection, components.PCA):
    """PCA of columns that lie in several databases, which share only the key of their people.

    Each database answers for its own columns: sums and products, then sums over random groups of people, the same
    groups in all (a public hash of the person, one salt). Products of columns of two databases are estimated
    from how their group sums vary together.

    Privacy: each database's part of the spend is charged to its own ledger. A person loses the sum over all databases,
    which is what `spent_` says (SR20); a ledger that several share is charged only if it can hold all their parts.
    Accuracy: an average product from g groups has a standard error of about sqrt((m_ii + gR/n)(m_jj + gR/n) +
    m_ij^2)/sqrt(g), R the variance of the noise; `errors_` has it for each. The number of groups makes it smallest.
    Source: DN04 as in BDMN05, section 4.1 (S0.12); disjoint groups in place of halves cost one sum, not as many as
    there are.

    Args:
        n_components: How many directions.
        cells: How many groups, or random halves; left open, by the noise (halves: 400).
        method: "cells" for groups; "subsets" for random halves, as in the papers; "auto" is "cells", under a SubLinear
            budget "subsets".
        salt: Which groups; the same in all databases.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: as `PCA`, and `errors_`, the standard error of each average product. Rows are matched by their person: one
    who has several rows counts with their sum. Under a SubLinear budget: as many queries a column as halves, and two.
    """

    def _learn_from(self, found: Found, k: int) -> None:
        self._learn(found.moments(found.products - np.outer(found.away, found.away)), k)


def by_cells(holders: list[Holder], number: int | None, salt: int) -> Found:
    """Moments of each database's own columns, then sums over disjoint groups of people."""
    for holder in holders:  # whatever would be refused is refused before anything is spent
        holder.spending.foresee(holder.moments(), LOOK_PART)
        holder.spending.plan(2, holder.moments(), holder.groups(number or 2, salt))
    afford(holders, [(holder.moments(), holder.groups(number or 2, salt)) for holder in holders])
    # Of a group's sums, by column; the same for any number of groups.
    plans = [holder.spending.foresee(holder.groups(2, salt), 1 - LOOK_PART) for holder in holders]
    noise = np.concatenate([deviations(plan)[0] * holder.unit for plan, holder in zip(plans, holders, strict=True)])
    own = [holder.spending.one(holder.moments(), LOOK_PART).released for holder in holders]
    n = _number(holders, [(released.values()[0, 0], released.deviations()[0]) for released in own])
    width = len(noise)
    away, products, errors = np.zeros(width), np.zeros((width, width)), np.zeros((width, width))
    for holder, released in zip(holders, own, strict=True):
        values, d = released.values()[0, holder.unknown :] / n, len(holder.space)
        away[holder.places] = np.clip(values[:d], -holder.space.half, holder.space.half)
        products[holder.places, holder.places] = symmetric(values[d:], d)
        errors[holder.places, holder.places] = released.deviations()[-1] / n
    squares = np.maximum(np.diag(products), 1e-6 * np.concatenate([holder.space.half**2 for holder in holders]))
    groups = number or best_number(squares, noise**2, n)
    sums = [
        holder.spending.one(holder.groups(groups, salt), 1 - LOOK_PART).released.values() * holder.unit
        for holder in holders
    ]
    across = from_cells(np.concatenate(sums, axis=1)) / n
    owner = np.concatenate([np.full(len(holder.space), i) for i, holder in enumerate(holders)])
    apart = owner[:, None] != owner  # the pairs of columns that lie in two databases
    products = np.where(apart, across, products)
    errors = np.where(apart, standard_errors(products, noise**2, n, groups, factor=groups), errors)
    half = np.concatenate([holder.space.half for holder in holders])
    return Found(n, np.concatenate([holder.space.middle for holder in holders]), away, products, errors, half)


def by_subsets(holders: list[Holder], number: int, salt: int) -> Found:
    """Sums and squares, then sums over random halves of the people, as the papers have it [S0.12]."""
    asked = [[holder.totals(), *holder.halves(number, salt)] for holder in holders]
    for holder, questions in zip(holders, asked, strict=True):
        holder.spending.plan(len(questions), *questions)
        holder.spending.foresee(questions[0], LOOK_PART)
        holder.spending.foresee(questions[-1], (1 - LOOK_PART) * Fraction(len(questions[-1].questions), number))
    afford(holders, asked)
    own = [holder.spending.several(questions[0], LOOK_PART) for holder, questions in zip(holders, asked, strict=True)]
    n = _number(holders, [(float(a[-1].released.values()[0, 0]), float(a[-1].released.deviations()[0])) for a in own])
    sums: list[Floats] = []
    noise: list[Floats] = []
    for holder, (_, *rest) in zip(holders, asked, strict=True):
        parts = [(q, (1 - LOOK_PART) * Fraction(len(q.questions), number)) for q in rest]
        answers = [answer for q, part in parts for answer in holder.spending.several(q, part)]
        sums.append(np.concatenate([answer.released.values() for answer in answers]))
        noise.append(answers[0].released.deviations())
    totals = np.concatenate([answers[0].released.values()[0] for answers in own])
    squares = np.concatenate([answers[1].released.values()[0] for answers in own]) / n
    errors = np.concatenate([answers[1].released.deviations() for answers in own]) / n
    products = from_subsets(np.concatenate(sums, axis=1)) / n
    np.fill_diagonal(products, squares)
    found = standard_errors(products, np.concatenate(noise) ** 2, n, number, factor=4)
    np.fill_diagonal(found, errors)
    width = np.concatenate([2 * holder.space.half for holder in holders])
    low = np.concatenate([holder.low for holder in holders])
    return Found(n, low, np.clip(totals / n, 0.0, width), products, found, width)


def _number(holders: list[Holder], counts: list[tuple[float, float]]) -> float:
    """The number of people: public, or the mean of the noisy ones, no less than its noise."""
    sizes = [holder.spending.facts.size for holder in holders]
    known = [size for size in sizes if size is not None]
    if known:
        return float(max(known))
    noise = float(np.sqrt(sum(off**2 for _, off in counts))) / len(counts)
    return divisor_of(float(np.mean([count for count, _ in counts])), noise)
