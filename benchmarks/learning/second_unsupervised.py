"""A second set of tables for PCA and k-means: no rule or constant was chosen on them.

    python -m benchmarks.learning.second_unsupervised RUNS SECONDS

By the Python of diffprivlib's environment: its side of every cell, a JSON line each, as `benchmarks.learning.peers`.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd

from benchmarks.learning import peers, sets, tasks

ROWS = 4_000  # of a table at most, the first
COLUMNS = {
    "cps1988": ("wage", "education", "experience"),
    "flights-sample": ("month", "day", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "distance"),
    "acs-ma2019": ("AGEP", "SEX", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "DENSITY", "PWGTP", "WGTP"),
    "insteval": ("studage", "lectage", "service", "dept", "y"),
    "planes": ("year", "engines", "seats"),
    "airports": ("lat", "lon", "alt", "tz"),
}


def load(name: str) -> sets.Labelled | None:
    """The numbers of a table, bounded by its schema or by the range rounded outwards; three clusters of each."""
    path = sets.folder() / f"{name}.csv"
    if not path.exists():
        return None
    names = list(COLUMNS[name])
    schema = json.loads(path.with_suffix(".schema.json").read_text(encoding="utf-8"))["columns"]
    frame = pd.read_csv(path, usecols=names)[names].apply(pd.to_numeric, errors="coerce").dropna()
    frame = frame.head(ROWS).astype(float).reset_index(drop=True)
    domains = {column: sets.domain(frame[column], schema[column]) for column in names}
    return sets.Labelled(name, frame, domains, np.zeros(len(frame), dtype=int), 1)


def main() -> None:
    """Every cell of diffprivlib."""
    from diffprivlib.mechanisms import Bingham

    warnings.simplefilter("ignore")
    Bingham.randomise = peers.batched
    runs, seconds = int(sys.argv[1]), float(sys.argv[2])
    for name in COLUMNS:
        table = load(name)
        for task in ("PCA", "k-means") if table else ():
            for epsilon in tasks.EPSILONS:
                for who, fit in peers.KINDS[task](table, epsilon).items():
                    peers.tell(task, name, epsilon, who, peers.repeat(fit, runs, seconds))


if __name__ == "__main__":
    main()
