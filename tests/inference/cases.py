"""A made-up table that inferences are asked of, in process and without noise."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sulq
from sulq import EpsilonDelta

ROWS = 6000
COLUMNS = {
    "x": sulq.Real(0, 10), "z": sulq.Real(-4, 4), "y": sulq.Real(-20, 40), "won": sulq.Bool(),
    "plan": sulq.Category(["free", "paid", "gift"]), "who'se": sulq.Bool(), "before": sulq.Real(-20, 40),
}  # fmt: skip


def frame(rows: int = ROWS) -> pd.DataFrame:
    """Numbers, a truth value and a category that have to do with each other."""
    rng = np.random.default_rng(17)
    x, z = rng.gamma(2, 1, rows).clip(0, 10), rng.normal(0, 1, rows).clip(-4, 4)
    plan, other = rng.choice(["free", "paid", "gift"], rows), rng.random(rows) < 0.5
    y = (2 + 1.5 * x - z + (plan == "paid") * 2 + rng.normal(0, 2, rows)).clip(-20, 40)
    before = (y - 0.7 + rng.normal(0, 1, rows)).clip(-20, 40)
    won = rng.random(rows) < 1 / (1 + np.exp(1.0 - 0.5 * x + 0.4 * z))
    return pd.DataFrame({"x": x, "z": z, "y": y, "won": won, "plan": plan, "who'se": other, "before": before})


def opened(data: pd.DataFrame | None = None, **more: object) -> sulq.api.database.Database:
    """A database of that table."""
    given = {"columns": COLUMNS, "budget": EpsilonDelta(90, 1e-6), "synthetic": True} | more
    return sulq.connect(frame() if data is None else data, **given)
