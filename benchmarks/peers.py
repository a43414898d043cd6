"""What SmartNoise SQL and diffprivlib answer, run by an environment of their own; prints JSON lines.

    python benchmarks/peers.py adult-train.csv RUNS

Each line: {"peer", "question", "note", "errors": root mean square over cells of each run}. The same public
bounds for everyone, epsilon 1 in total (SR23): SmartNoise charges an AVG three times the epsilon it is given.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")


def tell(peer: str, question: str, errors: list[float], note: str = "") -> None:
    """One line of the report."""
    print(json.dumps({"peer": peer, "question": question, "note": note, "errors": errors}), flush=True)


def diffprivlib(data: pd.DataFrame, runs: int) -> None:
    """Means and quantiles; it takes the number of rows as public."""
    from diffprivlib import tools

    age, hours, gain = (data[name].to_numpy() for name in ("age", "hours_per_week", "capital_gain"))
    public = "takes n as public"
    found = [float(tools.mean(age, epsilon=1, bounds=(17, 90))) - age.mean() for _ in range(runs)]
    tell("diffprivlib", "mean age", [abs(error) for error in found], public)
    groups = [hours[(data["sex"] == sex).to_numpy()] for sex in ("Female", "Male")]
    errors = []
    for _ in range(runs):
        cells = [float(tools.mean(group, epsilon=1, bounds=(1, 99))) - group.mean() for group in groups]
        errors.append(float(np.sqrt(np.mean(np.square(cells)))))
    tell("diffprivlib", "mean hours by sex", errors, public)
    for name, column, q, bounds in (
        ("median age", age, 0.5, (17, 90)),
        ("90% quantile of age", age, 0.9, (17, 90)),
        ("95% quantile of capital gain", gain, 0.95, (0, 99_999)),
    ):
        # The error of a quantile is how many rows it is off by: values say little where they are dense or sparse.
        found = [float(tools.quantile(column, q, epsilon=1, bounds=bounds)) for _ in range(runs)]
        tell("diffprivlib", name, [rank_error(column, value, q) for value in found])


def rank_error(column: np.ndarray, value: float, q: float) -> float:
    """How many rows a value lies from the quantile's own rank."""
    below, above = float((column < value).sum()), float((column <= value).sum())
    target = q * len(column)
    return max(below - target, target - above, 0.0)


def smartnoise(data: pd.DataFrame, runs: int) -> None:
    """Means and counts in SQL."""
    import snsql
    from snsql import Privacy

    whole = {"type": "int"}
    columns = {
        "row_privacy": True, "rows": len(data), "age": whole | {"lower": 17, "upper": 90},
        "hours_per_week": whole | {"lower": 1, "upper": 99}, "sex": {"type": "string", "cardinality": 2},
        "education": {"type": "string", "cardinality": 16}, "race": {"type": "string", "cardinality": 5},
    }  # fmt: skip
    asked = {
        "mean age": ("SELECT AVG(age) FROM S.A", 1 / 3),
        "mean hours by sex": ("SELECT sex, AVG(hours_per_week) FROM S.A GROUP BY sex", 1 / 3),
        "counts by education and race": ("SELECT education, race, COUNT(*) FROM S.A GROUP BY education, race", 1.0),
    }
    truth = {
        "mean age": data["age"].mean(),
        "mean hours by sex": data.groupby("sex")["hours_per_week"].mean(),
        "counts by education and race": data.groupby(["education", "race"]).size(),
    }
    for name, (sql, epsilon) in asked.items():
        reader = snsql.from_df(data, privacy=Privacy(epsilon=epsilon, delta=1e-9), metadata={"": {"S": {"A": columns}}})
        reader._options.censor_dims = False
        errors = []
        for _ in range(runs):
            rows = reader.execute(sql)[1:]
            if name == "mean age":
                errors.append(abs(rows[0][0] - truth[name]))
            else:
                keys = [row[0] if len(row) == 2 else tuple(row[:-1]) for row in rows]
                gaps = [row[-1] - truth[name][key] for row, key in zip(rows, keys, strict=True)]
                errors.append(float(np.sqrt(np.mean(np.square(gaps)))))
        tell("SmartNoise SQL", name, errors)


def main() -> None:
    """Both peers."""
    data, runs = pd.read_csv(sys.argv[1]), int(sys.argv[2])
    diffprivlib(data, runs)
    smartnoise(data, max(runs // 4, 25))


if __name__ == "__main__":
    main()
