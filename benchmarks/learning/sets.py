"""The labelled tables that learners are compared on; read by our side and by the peers' own environment alike.

Bounds and lists are public: from the tables' schemas where they are given there, else the range of the
table rounded outwards, the same for everybody (SR23).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ("digits", "breast_cancer", "wine")
LABELS = {
    "banknote": "class",
    "heart-cleveland": "num",
    "winequality-white": "quality",
    "wheat-seeds": "class",
    "mushroom": "type",
    "car": "class",
    "adult-train": "income",
}
NAMES = (*BUNDLED, *LABELS)
NUMBERS = ("winequality-white",)  # whose label is a number too
MIXTURE = "mixture"
TEST = 0.2  # of the rows, to measure on what was not learned from

Domain = tuple[float, float] | list[str]  # bounds of a number, or a category's values


@dataclass(frozen=True)
class Labelled:
    """One table: columns with their public domains, and a label by its place in the list of classes."""

    name: str
    frame: pd.DataFrame
    domains: dict[str, Domain]
    y: np.ndarray
    classes: int

    def numbers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points for PCA and k-means with their bounds: the numbers, or indicators where there are none."""
        wide = {name: domain for name, domain in self.domains.items() if not isinstance(domain, list)}
        if not wide:
            points = self.indicators()
            return points, np.zeros(points.shape[1]), np.ones(points.shape[1])
        low, high = np.array(list(wide.values()), dtype=float).T
        return np.clip(self.frame[list(wide)].to_numpy(float), low, high), low, high

    def indicators(self) -> np.ndarray:
        """Numbers scaled to [-1, 1], an indicator of 0 or 1 for each value of a category."""
        parts = []
        for name, domain in self.domains.items():
            if isinstance(domain, list):
                parts += [(self.frame[name] == value).to_numpy(float) for value in domain]
            else:
                low, high = domain
                parts.append(2 * (np.clip(self.frame[name].to_numpy(float), low, high) - low) / (high - low) - 1)
        return np.stack(parts, axis=1)

    def codes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers as they are, categories by their place in the list, with bounds: what a tree is given."""
        parts, ends = [], []
        for name, domain in self.domains.items():
            if isinstance(domain, list):
                place = {value: i for i, value in enumerate(domain)}
                parts.append(self.frame[name].map(place).to_numpy(float))
                ends.append((0.0, max(len(domain) - 1.0, 1.0)))
            else:
                parts.append(np.clip(self.frame[name].to_numpy(float), *domain))
                ends.append(domain)
        low, high = np.array(ends, dtype=float).T
        return np.stack(parts, axis=1), low, high

    def split(self, run: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a run to learn from, and those to measure on; the same for everybody."""
        order = np.random.default_rng(run).permutation(len(self.y))
        held = int(len(order) * TEST)
        return order[held:], order[:held]


def load(name: str) -> Labelled | None:
    """One table, or None where the shared data is not there."""
    if name == MIXTURE:
        return mixture()
    if name in BUNDLED:
        return _bundled(name)
    path = folder() / f"{name}.csv"
    return _table(name, path) if path.exists() else None


def folder() -> Path:
    """Where the shared tables lie: $SULQ_DATA, or beside the checkout."""
    return Path(os.environ.get("SULQ_DATA") or ROOT.parent / "shared" / "data") / "tabular"


def mixture(rows: int = 100_000, width: int = 10, groups: int = 5) -> Labelled:
    """Five groups of unlike widths in ten dimensions; logistic regression names .989 of them rightly."""
    rng = np.random.default_rng(0)
    centres, widths = rng.normal(0, 1.85, (groups, width)), rng.uniform(0.6, 1.6, (groups, width))
    y = rng.integers(0, groups, rows)
    points = np.clip(centres[y] + widths[y] * rng.normal(size=(rows, width)), -10, 10)
    names = [f"x{j}" for j in range(width)]
    return Labelled(MIXTURE, pd.DataFrame(points, columns=names), dict.fromkeys(names, (-10.0, 10.0)), y, groups)


def _bundled(name: str) -> Labelled:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    names = [f"x{j}" for j in range(found.data.shape[1])]
    frame = pd.DataFrame(np.asarray(found.data, dtype=float), columns=names)
    domains: dict[str, Domain] = {n: (0.0, 16.0) if name == "digits" else _rounded(frame[n]) for n in names}
    return Labelled(name, frame, domains, np.asarray(found.target), int(found.target.max()) + 1)


def _table(name: str, path: Path) -> Labelled:
    label = LABELS[name]
    frame = pd.read_csv(path, keep_default_na=False)
    schema = json.loads(path.with_suffix(".schema.json").read_text(encoding="utf-8"))["columns"]
    if name == "heart-cleveland":  # a few rows miss a number; the label is whether there is a disease
        frame = frame.apply(pd.to_numeric, errors="coerce").dropna().reset_index(drop=True)
        frame[label] = (frame[label] > 0).astype(int)
    domains = {column: domain(frame[column], schema[column]) for column in frame.columns if column != label}
    if name in NUMBERS:
        lowest = int(schema[label]["lower"])
        return Labelled(name, frame[list(domains)], domains, frame[label].to_numpy() - lowest, 11)
    classes = {value: i for i, value in enumerate(sorted(frame[label].unique()))}
    return Labelled(name, frame[list(domains)], domains, frame[label].map(classes).to_numpy(), len(classes))


def domain(column: pd.Series, given: dict[str, object]) -> Domain:
    """The public domain of a column: as its schema gives it, else the range rounded outwards."""
    if given["type"] == "string":
        return [str(value) for value in given.get("values") or sorted(column.unique())]
    if "lower" in given:
        return float(given["lower"]), float(given["upper"])
    if "values" in given:  # codes of a number of grades
        return float(min(given["values"])), float(max(given["values"]))
    return _rounded(column)


def _rounded(column: pd.Series) -> tuple[float, float]:
    """The range rounded outwards to half of its leading digit."""
    low, high = float(column.min()), float(column.max())
    step = 10 ** np.floor(np.log10(high - low or 1.0)) / 2
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)
