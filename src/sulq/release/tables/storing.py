"""A contingency table's numbers as files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sulq.language.kinds import Floats
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, cells, closure, width
from sulq.release.tables.kept import Cells, Fitted, Kept, Measured, Modelled, Shifted
from sulq.release.tables.loglinear import LogLinear
from sulq.release.tables.marginal import named, rows, text
from sulq.release.tables.noisy import CellNoise, OwnNoise


def facts(kept: Kept) -> dict[str, object]:
    """What is known beside the tables."""
    match kept:
        case Cells():
            return {"law": kept.noise.law, "deviation": kept.noise.deviation}
        case Measured():
            return {"law": kept.noise.law, "deviations": list(kept.noise.deviations.values())}
        case Shifted():
            return {"law": kept.noise.law, "shift": kept.shift}
        case Modelled():
            told = {"law": kept.noise.law, "measured": kept.measured, "order": kept.order}
            return told | {"total": kept.model.total}
    return {"law": kept.noise.law}


def tables(kept: Kept, names: Sequence[str], labels: Sequence[Sequence[object]]) -> dict[str, pa.Table]:
    """The files a method needs: cells, or coefficients; measured marginals are on file as they are."""
    match kept:
        case Cells():
            columns: dict[str, object] = dict(zip(names, rows(labels), strict=True))
            return {"cells": pa.table(columns | {named(names, "value"): kept.values.ravel()})}
        case Fitted():
            codes = np.unravel_index(kept.places, kept.noise.sizes)
            own = {
                name: pa.array([text(labels[i][code]) for code in codes[i]], pa.string())
                for i, name in enumerate(names)
            }
            whole = pa.table(own | {named(names, "cell"): kept.places, named(names, "count"): kept.counts})
            return {"cells": whole, "coefficients": _coefficients(kept.noise, names)}
        case Shifted():
            return {"coefficients": _coefficients(kept.noise, names)}
        case Modelled():
            found = _coefficients(kept.noise, names)
            model = kept.model.parameters
            each = [model.get(part, np.zeros(len(kept.noise.values[part]))) for part in _parts(kept.noise)]
            return {"coefficients": found.append_column("parameter", pa.array(np.concatenate(each)))}
    return {}


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


def kept(
    method: str,
    sizes: tuple[int, ...],
    asked: tuple[Places, ...],
    told: Mapping[str, Any],
    files: Mapping[str, pa.Table],
) -> Kept:
    """What was saved as these."""
    law = str(told["law"])
    if method == "cells":
        noise = CellNoise(sizes, float(told["deviation"]), law)
        return Cells(_last(files["cells"], -1).reshape(sizes), noise)
    if method == "marginals":
        ends = np.cumsum([cells(part, sizes) for part in asked])[:-1]
        values = np.split(_last(files["marginals"], -2), ends)
        shaped = [own.reshape(own_sizes(part, sizes)) for part, own in zip(asked, values, strict=True)]
        deviations = dict(zip(asked, map(float, told["deviations"]), strict=True))
        return Measured(dict(zip(asked, shaped, strict=True)), OwnNoise(sizes, deviations, law))
    order = int(told["order"]) if method == "model" else len(sizes)
    parts = [part for part in closure(asked) if width(part, sizes) and len(part) <= order]
    ends = np.cumsum([width(part, sizes) for part in parts])[:-1]
    own = 1 if method == "model" else 0
    values, errors = (np.split(_last(files["coefficients"], i - own), ends) for i in (-2, -1))
    found = Coefficients(
        sizes, asked, dict(zip(parts, values, strict=True)), dict(zip(parts, errors, strict=True)), law
    )
    if method == "fourier":
        places, counts = (_last(files["cells"], i).astype(np.int64) for i in (-2, -1))
        return Fitted(found, places, counts)
    if method == "model":
        parameters = dict(zip(parts, np.split(_last(files["coefficients"], -1), ends), strict=True))
        return Modelled.of(found, str(told["measured"]), order, LogLinear(float(told["total"]), parameters))
    return Shifted(found, float(told["shift"]))


def _last(table: pa.Table, place: int) -> Floats:
    """A column by its place from the end: an attribute may have any name."""
    return np.asarray(table.column(table.num_columns + place).to_numpy(), dtype=np.float64)
