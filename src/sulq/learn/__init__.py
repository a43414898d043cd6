"""Learners: they ask an Oracle and nothing else, so what runs on an open file runs unchanged on a remote curator.

May be imported: the names below. LEARNERS is the list that the command line, the server's jobs and the console make
their forms from; a learner joins by its name in it.
Never here: a row, noise that protects people, or a debit; a mistake here may cost accuracy and never privacy (S0.29).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sulq.answers import wire
from sulq.errors import QuestionError, SetupError
from sulq.learn import vertical
from sulq.learn.additive import AdditiveClassifier, AdditiveRegressor
from sulq.learn.base import Learner
from sulq.learn.evaluation.folds import cross_validate, folds_of
from sulq.learn.evaluation.scores import evaluate
from sulq.learn.linear.logistic import LogisticRegression
from sulq.learn.linear.naive_bayes import NaiveBayes
from sulq.learn.linear.perceptron import Perceptron
from sulq.learn.linear.regression import LinearRegression
from sulq.learn.model_json import unreadable
from sulq.learn.scaling import StandardScaler
from sulq.learn.sq.backends import StatisticalQueries
from sulq.learn.sq.boolean import DecisionList, MonotoneConjunction
from sulq.learn.sq.local_search import HillClimbing
from sulq.learn.sq.planning import min_n, plan
from sulq.learn.trees.id3 import ID3
from sulq.learn.unsupervised.components import PCA, SVD
from sulq.learn.unsupervised.kmeans import KMeans

__all__ = [
    "ID3",
    "LEARNERS",
    "PCA",
    "SVD",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "DecisionList",
    "HillClimbing",
    "KMeans",
    "Learner",
    "LinearRegression",
    "LogisticRegression",
    "MonotoneConjunction",
    "NaiveBayes",
    "Perceptron",
    "StandardScaler",
    "StatisticalQueries",
    "cross_validate",
    "evaluate",
    "folds_of",
    "load",
    "min_n",
    "plan",
    "vertical",
]

LEARNERS: Final[tuple[type[Learner], ...]] = (
    AdditiveClassifier,
    AdditiveRegressor,
    DecisionList,
    HillClimbing,
    ID3,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MonotoneConjunction,
    NaiveBayes,
    PCA,
    Perceptron,
    SVD,
    StandardScaler,
)


def load(source: str | Path | Mapping[str, object]) -> Learner:
    """A model from the file that `model.save`, `sulq learn --out` or the console wrote, or from its JSON.

    It predicts as the fitted one does and needs no data, no curator and no budget.

    Raises:
        QuestionError: `bad-model`: it is no model, or of a format or learner this version does not know.
        SetupError: `missing-file`: the file cannot be read.
    """
    tree: object = source
    if not isinstance(source, Mapping):
        try:
            tree = wire.strict(Path(source).read_bytes())
        except OSError:
            raise SetupError("missing-file", f"The model {source} cannot be read.") from None
        except QuestionError:
            raise unreadable() from None
    known = {learner.__name__: learner for learner in LEARNERS}
    if not isinstance(tree, Mapping) or not isinstance(tree.get("learner"), str) or tree["learner"] not in known:
        raise unreadable()
    return known[tree["learner"]].from_json(tree)
