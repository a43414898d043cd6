"""What a published table holds: noisy numbers, or a table made from noisy coefficients; as files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sulq.language.kinds import Floats, Integers
from sulq.release.space import named, rows, text
from sulq.release.tables.fitting import LogLinear
from sulq.release.tables.interactions import Places, cells, closure, inverse, own_sizes, width
from sulq.release.tables.noisy_tables import Coefficients, NoisyCells, NoisyMarginals, NoisyTable


@dataclass(frozen=True, slots=True, eq=False)
class FittedTable:
    """`fourier`: the noisy coefficients, and the one table of whole counts that was fitted to them."""

    noise: Coefficients
    places: Integers  # of the cells that are not zero, the last attribute fastest
    counts: Integers

    @classmethod
    def to(cls, coefficients: Coefficients, values: Floats) -> FittedTable:
        """The fit, rounded to the nearest whole numbers."""
        whole = np.rint(values).astype(np.int64)
        places = np.flatnonzero(whole)
        return cls(coefficients, places, whole[places])

    def marginal(self, places: Places) -> Floats:
        """Sums of cells."""
        found = np.zeros(own_sizes(places, self.noise.sizes))
        codes = np.unravel_index(self.places, self.noise.sizes)
        np.add.at(found, tuple(codes[place] for place in places), self.counts)
        return found

    def table(self) -> Floats:
        """All cells."""
        found = np.zeros(cells(range(len(self.noise.sizes)), self.noise.sizes))
        found[self.places] = self.counts
        return found.reshape(self.noise.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedTable:
    """`fourier-shift`: the noisy coefficients alone, and the constant number of rows that is added."""

    noise: Coefficients
    shift: float

    def marginal(self, places: Places) -> Floats:
        """Straight from the coefficients, without the added rows."""
        return self.noise.marginal(places)

    def table(self) -> Floats:
        """The table that has these coefficients and no others, with the added rows: real numbers, seldom negative."""
        sizes = self.noise.sizes
        whole = np.zeros(sizes)
        for part, values in self.noise.values.items():
            place = tuple(slice(1, None) if i in part else 0 for i in range(len(sizes)))
            whole[place] = values.reshape(tuple(size - 1 for size in own_sizes(part, sizes)))
        return inverse(whole) + self.shift / whole.size


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """`model`: a log-linear table fitted to the coefficients of interactions of at most `order` attributes.

    `measured`: by which method they were. `noise` has them as measured.
    """

    noise: Coefficients
    measured: str
    order: int
    model: LogLinear
    values: Floats

    @classmethod
    def of(cls, noise: Coefficients, measured: str, order: int, model: LogLinear) -> ModelTable:
        """The table of this model."""
        return cls(noise, measured, order, model, model.table(noise.sizes))

    def marginal(self, places: Places) -> Floats:
        """Sums of cells."""
        return np.asarray(self.values.sum(axis=tuple(set(range(self.values.ndim)) - set(places))))

    def table(self) -> Floats:
        """All cells: real numbers, none negative."""
        return self.values.copy()


Contents = NoisyCells | NoisyMarginals | FittedTable | ShiftedTable | ModelTable


def noise_of(contents: Contents) -> NoisyTable:
    """How noisy the marginals of a published table are; of a fit, before it."""
    return contents if isinstance(contents, (NoisyCells, NoisyMarginals)) else contents.noise


def stored_facts(contents: Contents) -> dict[str, object]:
    """What is known beside the tables."""
    law: dict[str, object] = {"law": noise_of(contents).law}
    match contents:
        case NoisyCells():
            return law | {"deviation": contents.deviation}
        case NoisyMarginals():
            return law | {"deviations": list(contents.deviations.values())}
        case ShiftedTable():
            return law | {"shift": contents.shift}
        case ModelTable():
            return law | {"measured": contents.measured, "order": contents.order, "total": contents.model.total}
    return law


def stored_tables(contents: Contents, names: Sequence[str], labels: Sequence[Sequence[object]]) -> dict[str, pa.Table]:
    """The files a method needs: cells, or coefficients; measured marginals are on file as they are."""
    match contents:
        case NoisyCells():
            columns: dict[str, object] = dict(zip(names, rows(labels), strict=True))
            return {"cells": pa.table(columns | {named(names, "value"): contents.values.ravel()})}
        case NoisyMarginals():
            return {}
        case FittedTable():
            codes = np.unravel_index(contents.places, contents.noise.sizes)
            own = {
                name: pa.array([text(labels[i][code]) for code in codes[i]], pa.string())
                for i, name in enumerate(names)
            }
            whole = pa.table(own | {named(names, "cell"): contents.places, named(names, "count"): contents.counts})
            return {"cells": whole, "coefficients": _coefficients(contents.noise, names)}
        case ModelTable():
            found = _coefficients(contents.noise, names)
            model = contents.model.parameters
            each = [model.get(part, np.zeros(len(contents.noise.values[part]))) for part in _parts(contents.noise)]
            return {"coefficients": found.append_column("parameter", pa.array(np.concatenate(each)))}
    return {"coefficients": _coefficients(contents.noise, names)}


def _parts(found: Coefficients) -> list[Places]:
    """The interactions in the order of the file."""
    return [part for part in closure(found.marginals) if part in found.values]


def _coefficients(found: Coefficients, names: Sequence[str]) -> pa.Table:
    parts = _parts(found)
    of = [" x ".join(names[place] for place in part) for part in parts for _ in found.values[part]]
    return pa.table(
        {
            "interaction": pa.array(of, pa.string()),
            "value": np.concatenate([found.values[part] for part in parts]),
            "standard_error": np.concatenate([found.deviations[part] for part in parts]),
        }
    )


def stored_contents(
    method: str,
    sizes: tuple[int, ...],
    asked: tuple[Places, ...],
    told: Mapping[str, Any],
    files: Mapping[str, pa.Table],
) -> Contents:
    """What was saved as these."""
    law = str(told["law"])
    if method == "cells":
        return NoisyCells(_last(files["cells"], -1).reshape(sizes), float(told["deviation"]), law)
    if method == "marginals":
        ends = np.cumsum([cells(part, sizes) for part in asked])[:-1]
        values = np.split(_last(files["marginals"], -2), ends)
        shaped = {part: own.reshape(own_sizes(part, sizes)) for part, own in zip(asked, values, strict=True)}
        deviations = dict(zip(asked, map(float, told["deviations"]), strict=True))
        return NoisyMarginals(sizes, shaped, deviations, law)
    order = int(told["order"]) if method == "model" else len(sizes)
    parts = [part for part in closure(asked) if width(part, sizes) and len(part) <= order]
    ends = np.cumsum([width(part, sizes) for part in parts])[:-1]

    def column(place: int) -> dict[Places, Floats]:
        return dict(zip(parts, np.split(_last(files["coefficients"], place), ends), strict=True))

    values_at = -3 if method == "model" else -2
    found = Coefficients(sizes, asked, column(values_at), column(values_at + 1), law)
    if method == "fourier":
        places, counts = (_last(files["cells"], i).astype(np.int64) for i in (-2, -1))
        return FittedTable(found, places, counts)
    if method == "model":
        model = LogLinear(float(told["total"]), column(-1))
        return ModelTable.of(found, str(told["measured"]), order, model)
    return ShiftedTable(found, float(told["shift"]))


def _last(table: pa.Table, place: int) -> Floats:
    """A column by its place from the end: an attribute may have any name."""
    return np.asarray(table.column(table.num_columns + place).to_numpy(), dtype=np.float64)
