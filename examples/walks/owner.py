"""A walk for whoever holds the data: declare it, look whether the declaration fits, publish the yearly report."""

# %% [markdown]
# # The owner's yearly report
# A hospital holds a file of visits. Its owner declares what is public, looks whether the declaration fits, and
# publishes a report that hides every patient. All data here are made up.

# %%
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sulq
from sulq import Epsilon, EpsilonDelta, Unit

rng = np.random.default_rng()
patients = rng.integers(0, 6_000, 20_000)
visits = pa.table(
    {
        "patient": patients,
        "ward": rng.choice(["North", "South", "East"], 20_000),
        "year": rng.integers(2019, 2026, 20_000),
        "days": rng.gamma(2.0, 2.5, 20_000).round(),
    }
)
pq.write_table(visits, "visits.parquet")

# %% [markdown]
# ## Declare
# What stands in the declaration is public for ever, so it comes from what the owner knows and not from the data.
# `sulq init visits.parquet` writes such a declaration from the file's names and types, with questions to answer.

# %%
columns = {
    "ward": ["north", "south", "east"],
    "year": sulq.Int(2019, 2025),
    "days": sulq.Int(0, 10),
}
unit = Unit("patient", rows=2)
print(sulq.check("visits.parquet", columns=columns, unit=unit))

# %% [markdown]
# Nothing of this page may be published: it counts rows exactly. It says that every ward is written in another case,
# that many stays are longer than ten days, and that patients have more than two visits. Answers would be confident and
# wrong. What is declared otherwise after looking is recorded as that, and analysts are told.

# %%
columns = {
    "ward": ["North", "South", "East"],
    "year": sulq.Int(2019, 2025),
    "days": sulq.Int(0, 60),
}
unit = Unit("patient", rows=10)
db = sulq.connect("visits.parquet", columns=columns, unit=unit, budget=EpsilonDelta(3, 1e-6))
print(db.facts)

# %% [markdown]
# ## Describe
# One call, one price: what a table holds, for the owner's own records or for anybody.

# %%
db.describe(spend=Epsilon(0.5))

# %% [markdown]
# ## The report
# Titled queries, at one debit; the page says what it protects, in words for a reader and in notes for a statistician.

# %%
report = db.report(
    {
        "title": "Stays in 2019 to 2025",
        "author": "The hospital",
        "about": "How many visits there were, where, and for how long.",
        "spend": {"epsilon": 1.0},
        "table": [
            {
                "title": "Visits by year",
                "sql": "SELECT year, COUNT(*) AS visits FROM visits GROUP BY year ORDER BY year",
            },
            {
                "title": "Stays by ward",
                "sql": "SELECT ward, COUNT(*) AS visits, AVG(days) AS days FROM visits GROUP BY ward",
                "about": "Days are counted up to sixty.",
            },
        ],
    }
)
report.save("report")
print(report)
print(sorted(path.name for path in Path("report").iterdir()))

# %%
for part in report.promise():
    print(part.heading)
    for text in part.paragraphs:
        print("   ", text)

# %% [markdown]
# The same report again, from its saved answers alone: byte for byte, for nothing, without the data.

# %%
sulq.release.load("report").save("again")
print(Path("again/index.html").read_bytes() == Path("report/index.html").read_bytes())
print(db.budget)
db.close()
