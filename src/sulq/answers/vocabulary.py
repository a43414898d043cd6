"""Every kind of value that may cross a boundary, by name: the table `wire` reads and writes by."""

from __future__ import annotations

from typing import Final

from sulq.answers.answer import Answer, Answers
from sulq.answers.estimators import Average, CentredMean, Chosen, Covariance, FirstAbove, Mean, Placed, Plain, Spread
from sulq.answers.plan import Part, Plan, Whole
from sulq.answers.quantiles import Bed, Picked, Quantile, Quantiles
from sulq.answers.receipt import Receipt, SignedReceipt
from sulq.answers.released import Noise, Released
from sulq.language.domain import COLUMNS, Schema
from sulq.language.estimator import Certificate, Estimator
from sulq.language.facts import Facts, Heavy, TableFacts
from sulq.language.law import (
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
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, Event, Queries, Rho, Split, SubLinear, Unit
from sulq.language.question import QUESTIONS
from sulq.language.relation import RELATIONS
from sulq.language.rowfn import ROW_FUNCTIONS
from sulq.language.score import SCORES
from sulq.language.space import SPACES
from sulq.language.statistic import STATISTICS, Graph
from sulq.language.tally import Block, Key, Tally

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
