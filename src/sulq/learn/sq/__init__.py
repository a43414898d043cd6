"""Statistical queries: one seam, `StatOracle`, what answers behind it, and the learners that ask it.

May be imported: the oracles below, and the learners and `StatisticalQueries`, by `sulq.learn`.
Never here: a row of a database, noise that protects people, or a tolerance whose price was not foreseen.
"""

from __future__ import annotations

from sulq.learn.sq.oracles import Adversarial, Exact, NoisyLabels, Sample, StatOracle

__all__ = ["Adversarial", "Exact", "NoisyLabels", "Sample", "StatOracle"]
