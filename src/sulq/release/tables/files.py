"""A contingency table's numbers as files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sulq.language.kinds import Floats
from sulq.release.marginal import named, rows, text
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.contents import Contents, FittedTable, ModelTable, ShiftedTable, noise_of
from sulq.release.tables.interactions import Places, cells, closure, width
from sulq.release.tables.loglinear import LogLinear
from sulq.release.tables.noisy_tables import NoisyCells, NoisyMarginals


def facts(contents: Contents) -> dict[str, object]:
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


def tables(contents: Contents, names: Sequence[str], labels: Sequence[Sequence[object]]) -> dict[str, pa.Table]:
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


def loaded(
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
