"""Sulq, in the environment it is developed in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from loop import serve

REGIONS = [f"r{number:02d}" for number in range(50)]
SQL = {
    "filtered count": "SELECT COUNT(*) AS n FROM survey WHERE age > 40",
    "sum and mean": "SELECT SUM(income) AS s, AVG(income) AS m FROM survey",
    "groups": "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m FROM survey GROUP BY region",
    "histogram": "SELECT age, COUNT(*) AS n FROM survey GROUP BY age",
    "person groups": "SELECT region, COUNT(*) AS n FROM survey GROUP BY region",
}
Run = Callable[[], object]


def opened(told: dict[str, Any], columns: dict[str, object], *, budget: object, unit: object = None) -> Any:
    """The table from its prepared copy, made once; the ledger as it was before the first ask.

    A timing wants many asks at epsilon 1 and each ledger holds 900 of them: what starts anew
    here is the ledger of a made-up table, which protects nobody.
    """
    import sulq

    path = Path(told["path"])
    cache = path.parent / "prepared"
    cache.mkdir(exist_ok=True)
    name = path.stem + ("-person" if unit else "")
    first, copy = cache / f"{name}.ledger", cache / f"{name}.prepared"
    facts = {"table": "survey", "columns": columns, "unit": unit, "budget": budget, "synthetic": True}
    if told.get("anew") or not first.exists() or not copy.exists():
        copy.unlink(missing_ok=True)
        unfinished = cache / f"{name}.unfinished.ledger"
        unfinished.unlink(missing_ok=True)
        with sulq.connect(path, ledger=unfinished, prepared=copy, **facts) as db:
            db.prepare()
        unfinished.rename(first)
    own = Path(tempfile.mkdtemp(prefix="sulq-versus-", dir=told["scratch"])) / "own.ledger"
    shutil.copyfile(first, own)
    db = sulq.connect(path, ledger=own, prepared=copy, **facts)
    db.prepare()
    return db


def survey(told: dict[str, Any]) -> Any:
    """The table of people, by row or by person."""
    import sulq

    columns = {"age": sulq.Int(0, 100), "income": sulq.Real(0, 200_000), "region": sulq.Category(REGIONS)}
    unit = sulq.Unit("person", rows=5) if told["question"] == "person groups" else None
    return opened(told, columns, budget=sulq.Epsilon(900), unit=unit)


def queries(told: dict[str, Any]) -> tuple[Run, str]:
    """The same SQL as raw DuckDB's, through `db.sql`."""
    import sulq

    db, sql, spend = survey(told), SQL[told["question"]], sulq.Epsilon(told["epsilon"])
    keyed = "GROUP BY" in sql

    def run() -> object:
        frame = db.sql(sql, spend=spend, fresh=True)

        def values() -> list[float]:
            found = frame.to_pandas()
            found = found[found.iloc[:, 0].notna()].sort_values(found.columns[0]).iloc[:, 1:] if keyed else found
            return [float(v) for row in found.itertuples(index=False) for v in row]

        return values

    return run, "same SQL; from the prepared copy"


def preparing(told: dict[str, Any]) -> tuple[Run, str]:
    """A prepared copy from nothing: at most five rows of each person, or rows without persons."""
    import duckdb

    import sulq

    columns = {"age": sulq.Int(0, 100), "income": sulq.Real(0, 200_000), "region": sulq.Category(REGIONS)}
    unit = sulq.Unit("person", rows=5) if told["question"] == "preparing persons" else None
    facts = {"table": "survey", "columns": columns, "unit": unit, "budget": sulq.Epsilon(9), "synthetic": True}

    def run() -> list[float]:
        with tempfile.TemporaryDirectory(prefix="sulq-versus-", dir=told["scratch"]) as name:
            place = {"ledger": Path(name) / "own.ledger", "prepared": Path(name) / "copy"}
            with sulq.connect(Path(told["path"]), **facts, **place) as db:
                db.prepare()
            with duckdb.connect(str(place["prepared"]), read_only=True) as copy:
                return [float(copy.execute("SELECT count(*) FROM kept").fetchall()[0][0])]

    return run, "checked by the kernel"


def shapes(told: dict[str, Any]) -> tuple[Run, str]:
    """A count in very many groups, one sum of a wide table, a prepared copy of a CSV file."""
    import sulq

    if told["question"] == "a copy of CSV":
        return preparing(told)
    spend, rows = sulq.Epsilon(told["epsilon"]), told["declared"]
    if told["question"] == "one sum of many columns":
        names = [f"x{j}" for j in range(told["width"])]
        wide = opened(told, dict.fromkeys(names, sulq.Real(-1, 1)), budget=sulq.Epsilon(900))
        return lambda: [rows + float(wide.sum("x7", spend=spend, fresh=True).value)], "from the prepared copy"
    db = opened(told, {"k": sulq.Int(0, told["keys"] - 1)}, budget=sulq.Epsilon(900))

    def run() -> object:
        found = db.sql("SELECT k, COUNT(*) AS n FROM survey GROUP BY k", spend=spend, fresh=True)
        return lambda: [rows + float(sum(found.to_arrow()["n"].to_pylist()))]

    return run, "same SQL; from the prepared copy"


def accuracy(told: dict[str, Any]) -> tuple[Run, str]:
    """Errors of the noise that one real answer had: its own law, drawn cell by cell as an answer draws it.

    The note tells, as JSON, the law's own variance (from its probabilities) of what is answered.
    """
    import json

    import numpy as np
    import pyarrow.parquet as pq

    import sulq
    from sulq.kernel.mechanisms import bulk

    db, spend, question = survey(told | {"question": "accuracy"}), sulq.Epsilon(told["epsilon"]), told["question"]
    answer = {
        "count": lambda: db.count(spend=spend),
        "sum": lambda: db.sum("income", spend=spend),
        "mean": lambda: db.mean("income", spend=spend),
        "histogram": lambda: db.histogram("age", spend=spend),
    }[question]()
    released = answer.released
    (noise,) = released.noise
    income = pq.read_table(told["path"], columns=["income"])["income"].to_numpy()
    step, cells = float(noise.step), released.units.size
    far = int(60 * float(noise.law.scale)) + 60
    stride = max(far // 200_000, 1)  # of a wide law every so-many-th term, each for all up to the next
    own = 2 * stride * sum(z * z * noise.law.pmf(z) for z in range(stride, far, stride)) * step**2
    draw, part = getattr(bulk, noise.law.kind), 0.5
    if question == "mean":
        low, high = float(answer.reading.lo), float(answer.reading.hi)
        exact = np.rint(np.array([(income - low).sum(), (high - income).sum()]) / step).astype(np.int64)
        part = float(exact[0] / exact.sum())
        own *= ((1 - part) ** 2 + part**2) * ((high - low) / (exact.sum() * step)) ** 2

    def errors() -> list[float]:
        drawn = np.array([draw(cells, noise.law.scale) for _ in range(-(-told["many"] // cells))])
        if question != "mean":
            return list(drawn.ravel() * step)
        noisy = replace(released, units=exact + drawn)
        return list(answer.reading.value(noisy).ravel() - income.mean())

    return errors, json.dumps({"variance": own, "part": part})


def kernels(told: dict[str, Any]) -> tuple[Run, str]:
    """A covariance matrix; a k-means round."""
    import numpy as np

    import sulq

    width = told["width"]
    names = [f"x{j}" for j in range(width)]
    db = opened(told, dict.fromkeys(names, sulq.Real(-1, 1)), budget=sulq.Rho(900))
    spend = sulq.Rho(1)
    if told["question"] == "covariance":

        def run() -> object:
            found = db.covariance(names, spend=spend, fresh=True)
            return lambda: [found.value[0, 0], found.value[0, 1]]

        return run, "from the prepared copy; zCDP rho 1; n secret"
    points = sulq.vector(names)
    asked = sulq.Sums((sulq.lit(1), points), by=(sulq.nearest(points, np.asarray(told["centres"])),))

    def rounds() -> object:
        found = db.ask(asked, spend=spend)
        return lambda: sorted(found.released.values()[:, 0])

    return rounds, "from prepared columns; zCDP rho 1"


def marginals(told: dict[str, Any]) -> tuple[Run, str]:
    """All pairs of a table of codes from one release, and how far off they are."""
    import itertools

    import numpy as np
    import pandas as pd

    import sulq
    from sulq import release

    frame = pd.read_csv(told["path"])
    names, sizes = list(frame.columns), told["sizes"]
    columns = {name: sulq.Int(0, size - 1) for name, size in zip(names, sizes, strict=True)}
    db = sulq.connect(frame, columns=columns, budget=sulq.Epsilon(900), synthetic=True)
    db.prepare()
    truth = {pair: pd.crosstab(frame[pair[0]], frame[pair[1]]).to_numpy() for pair in itertools.combinations(names, 2)}
    spend = sulq.Epsilon(told["epsilon"])

    def run() -> object:
        made = release.contingency(db, names, ways=2, bins=max(sizes), spend=spend)
        found = {pair: made.marginal(list(pair)).values for pair in truth}  # noqa: PD011 - not a frame
        return lambda: [float(np.mean([np.abs(found[p] - truth[p]).sum() for p in truth])) / len(frame)]

    return run, "method auto"


def noise(told: dict[str, Any]) -> tuple[Run, str]:
    """Integers in, noisy integers out, by the sampler that answers use."""
    import numpy as np

    from sulq.kernel.mechanisms import bulk

    draw, scale = getattr(bulk, told["question"]), Fraction(told["scale"])
    values = np.arange(told["cells"], dtype=np.int64)

    def run() -> object:
        found = values + draw(values.size, scale)
        return lambda: [found.size, float(np.std(found - values))]

    return run, "exact integers, entropy of the operating system"


def open_keys(told: dict[str, Any]) -> tuple[Run, str]:
    """Every label that enough people have: how many, and how far off their numbers of people are; all in one ask."""
    import numpy as np
    import pyarrow.parquet as pq

    import sulq

    table, each = pq.read_table(told["path"]), told["each"]
    spend = sulq.EpsilonDelta(told["epsilon"], told["delta"])
    shares = {"key_share": 0.9} if each == 1 else {"key_share": 0.5, "basic_share": 0.9}
    columns, unit = {"label": sulq.Text(longest=16)}, sulq.Unit("pid", rows=each)
    exact = {label["values"]: label["counts"] for label in table["label"].value_counts().to_pylist()}

    def run() -> object:
        with sulq.connect(
            table, table="labels", columns=columns, unit=unit, budget=spend, synthetic=True, **shares
        ) as db:
            text = "SELECT label, COUNT(DISTINCT pid) AS n FROM labels GROUP BY label"
            found = db.sql(text, spend=spend).to_dict()
        off = [float(n) - exact[label] for label, n in zip(found["label"], found["n"], strict=True)]
        return lambda: [len(off), float(np.sqrt(np.mean(np.square(off))))]

    return run, "; ".join(f"{name}={part}" for name, part in shares.items())


def prepare(told: dict[str, Any]) -> tuple[Run, str, str]:
    """By part."""
    if told.get("memory"):
        from sulq.sources.duckdb import connection

        # As on a machine of so much: what one engine may take before it spills is a part of the machine's memory.
        connection.memory = lambda: int(connection.MEMORY_FRACTION * told["memory"]) >> 20
    parts = {
        "A": queries,
        "G": queries,
        "B": accuracy,
        "C": kernels,
        "D": marginals,
        "E": noise,
        "H": open_keys,
        "I": shapes,
    }
    part = preparing if told.get("question", "").startswith("preparing") else parts[told["part"]]
    run, note = part(told)
    import sulq

    return run, sulq.__version__, note


if __name__ == "__main__":
    serve(prepare)
