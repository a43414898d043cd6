"""Every kind of value that may cross a boundary, by name: the table `wire` reads and writes by."""

from __future__ import annotations

from typing import Final

from sulq.terms.answer import Answer, Answers
from sulq.terms.domain import COLUMNS, Schema
from sulq.terms.engine import Block, Key, Tally
from sulq.terms.estimator import Certificate, Estimator
from sulq.terms.facts import Facts, Heavy, TableFacts
from sulq.terms.law import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    MetricLaw,
    PassedLaw,
)
from sulq.terms.plan import Part, Plan, Whole
from sulq.terms.privacy import Draw, Epsilon, EpsilonDelta, Event, Queries, Rho, Split, SubLinear, Unit
from sulq.terms.quantiles import Bed, Picked, Quantile, Quantiles
from sulq.terms.question import QUESTIONS
from sulq.terms.readings import Average, CentredMean, Chosen, Covariance, FirstAbove, Mean, Placed, Plain, Spread
from sulq.terms.receipt import Receipt, SignedReceipt
from sulq.terms.relation import RELATIONS
from sulq.terms.released import Noise, Released
from sulq.terms.rowfn import ROW_FUNCTIONS
from sulq.terms.score import SCORES
from sulq.terms.space import SPACES
from sulq.terms.statistic import STATISTICS, Graph

LOSSES: Final = (Epsilon, EpsilonDelta, Queries, Rho, SubLinear)
EVENTS: Final = (Draw, Event, Receipt, SignedReceipt, Split, Unit)
LAWS: Final = (
    *(AboveLaw, BinomialLaw, BitLaw, ExponentialLaw, FlipLaw, GaussianLaw, LaplaceLaw, MetricLaw),
    PassedLaw,
)
HOLISTIC: Final = (Certificate, Estimator, Graph, Whole, *SPACES, *STATISTICS)
PLANS: Final = (Block, Facts, Heavy, Key, Part, Plan, Schema, TableFacts, Tally, *RELATIONS, *SCORES, *HOLISTIC)
ANSWERS: Final = (
    *(Answer, Answers, Average, Bed, CentredMean, Chosen, Covariance, Mean, Noise, Plain, Quantile, Quantiles),
    *(FirstAbove, Picked, Placed, Released, Spread),
)

KINDS: Final[dict[str, type]] = {
    cls.__name__: cls for cls in (*LOSSES, *EVENTS, *LAWS, *PLANS, *ANSWERS, *COLUMNS, *QUESTIONS, *ROW_FUNCTIONS)
}
