"""Statistical queries: one seam, `StatOracle`, and what may stand behind it.

`Exact` and `Adversarial` are for testing learners, `Sample` for data that is nobody's secret; on a database
`sulq.learn.StatisticalQueries` asks by `Joint`, `Split` or, under a SubLinear budget, `Repeated`.
`NoisyLabels` sees through random label noise on any of them.
"""

from __future__ import annotations

from sulq.learn.sq.adversarial import Adversarial
from sulq.learn.sq.exact import Exact
from sulq.learn.sq.noisy_labels import NoisyLabels
from sulq.learn.sq.oracle import StatOracle
from sulq.learn.sq.sample import Sample

__all__ = ["Adversarial", "Exact", "NoisyLabels", "Sample", "StatOracle"]
