"""Statistical queries: one seam, `StatOracle`, what answers behind it, and the learners that ask it.

May be imported: the oracles below, and the learners and `StatisticalQueries`, by `sulq.learn`.
Never here: a row of a database, noise that protects people, or a tolerance whose price was not foreseen.
"""

from __future__ import annotations

from sulq.learn.sq.noisy_labels import NoisyLabels
from sulq.learn.sq.oracle import StatOracle
from sulq.learn.sq.reference import Adversarial, Exact, Sample

__all__ = ["Adversarial", "Exact", "NoisyLabels", "Sample", "StatOracle"]
