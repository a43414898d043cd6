"""A walk for an analyst: counts, conditions, several tables, SQL, frames, charts, regressions."""

# %% [markdown]
# # The analyst
# Ask in Python and in SQL, read the error bars, and compare groups. All data here are made up.

# %%
import numpy as np
import pyarrow as pa

import sulq
from sulq import Epsilon, Unit

rng = np.random.default_rng()
people = 5_000
ages = rng.integers(18, 90, people)
smoker = rng.random(people) < 0.3
persons = pa.table({"person": range(people), "age": ages, "smoker": smoker})
owner = rng.integers(0, people, 12_000)
visits = pa.table(
    {
        "person": owner,
        "year": rng.integers(2019, 2026, 12_000),
        "cost": (200 + 4.0 * ages[owner] + 150.0 * smoker[owner] + rng.normal(0, 80, 12_000)).round(2),
    }
)
db = sulq.connect(
    {"persons": persons, "visits": visits},
    columns={
        "persons": {"age": sulq.Int(18, 90, missing=False), "smoker": sulq.Bool(missing=False)},
        "visits": {"year": sulq.Int(2019, 2025, missing=False), "cost": sulq.Real(0, 1_000, missing=False)},
    },
    unit=Unit("person", rows=8),
    keys={"persons": "person"},
    budget=Epsilon(20),
)
print(db.count("age > 40 AND smoker", spend=Epsilon(0.2)))

# %% [markdown]
# ## Another table
# `table=` names it, `db.table("visits")` is that table asked as a database is.

# %%
by_year = db.count(by="year", table="visits", spend=Epsilon(0.5))
by_year

# %%
by_year.plot()
# %% [markdown]
# ## SQL, with what it costs before
# Joins by the person, an error bar on every cell, and a frame.

# %%
query = "SELECT smoker, COUNT(*) AS visits, AVG(cost) AS cost FROM persons JOIN visits USING (person) GROUP BY smoker"
print(db.explain(query, spend=Epsilon(1)))

# %%
answer = db.sql(query, spend=Epsilon(1))
answer.to_pandas(0.95)

# %% [markdown]
# ## A derived table
# What a SELECT of rows gives is asked as any table: here one row for each person.

# %%
each = db.view("SELECT person, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY person")
print(each.mean("cost", spend=Epsilon(1)))

# %% [markdown]
# ## Noise and sampling
# The people may be a sample of others. `sampling=True` counts that beside the noise.

# %%
mean = db.mean("age", sampling=True, spend=Epsilon(1))
print("noise alone        ", mean.interval(0.95))
print("noise and sampling ", mean.interval(0.95, sampling=True))

# %% [markdown]
# ## Compare, and explain
# Standard errors, intervals and p-values that count noise and sampling.

# %%
joined = db.view("SELECT age, smoker, cost FROM persons JOIN visits USING (person)")
joined.ols("cost", ["age", "smoker"], spend=Epsilon(6))

# %%
print(db.budget)
db.close()
