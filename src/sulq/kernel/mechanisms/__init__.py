"""Private value to noisy value: samplers that are exact, and the table of what may be drawn, at what exact price."""

from __future__ import annotations

from sulq.kernel.mechanisms.open_keys import reveal
from sulq.kernel.mechanisms.table import MECHANISMS, Cost, cost_of, law_of, priced, release, versions

__all__ = ["MECHANISMS", "Cost", "cost_of", "law_of", "priced", "release", "reveal", "versions"]
