"""Private value to noisy value: samplers that are exact, and the table of what may be drawn, at what exact price."""

from __future__ import annotations

from sulq.kernel.laws import MECHANISMS
from sulq.kernel.mechanisms.table import Columns, Cost, Shown, cost_of, law_of, priced, release, reveal

__all__ = ["MECHANISMS", "Columns", "Cost", "Shown", "cost_of", "law_of", "priced", "release", "reveal"]
