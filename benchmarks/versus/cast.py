"""Who takes part, from which environment, and what each must be measured against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """A script of contenders/ and the environment it runs in.

    `parts`: the workloads it takes part in. `bar`: how many times slower than sulq it has to be; None where the
    figure decides nothing. `private`: whether its answers protect anybody. `doubt`: where its
    guarantee is known not to hold to the letter (SR23).
    """

    name: str
    environment: str
    script: str
    parts: str
    bar: int | None = None
    private: bool = True
    doubt: str = ""


FLOATS = "sums of doubles, whose rounding may move farther than the sensitivity says"
OURS = Contender("sulq", "main", "ours", "ABCDEGHI")
RAW = Contender("raw DuckDB", "raw", "raw_duckdb", "AGI", private=False)
OTHERS = (
    RAW,
    Contender("raw Polars", "raw", "raw_polars", "AI", private=False),
    Contender("NumPy, scikit-learn", "raw", "numpy_memory", "CE", private=False),
    Contender("OpenDP", "opendp", "opendp_polars", "ABEH", 5),
    Contender(
        "SmartNoise SQL",
        "smartnoise",
        "smartnoise",
        "AB",
        1,
        doubt=f"{FLOATS}; the keys of groups are those found in the rows",
    ),
    Contender("diffprivlib", "diffprivlib", "diffprivlib_numpy", "ABE", doubt=f"noise and {FLOATS}"),
    Contender("PipelineDP", "pipelinedp", "pipelinedp_local", "ABH", 5, doubt=FLOATS),
    Contender("Tumult", "tumult", "tumult_spark", "AB", 5, doubt=FLOATS),
    Contender("mbi", "mbi", "mbi_fit", "D", doubt="noise drawn by NumPy in floating point"),
)


def named(name: str) -> Contender:
    """By its name, as lines and pages have it."""
    return next(each for each in (OURS, *OTHERS) if each.name == name)
