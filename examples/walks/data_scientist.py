"""A walk for a data scientist: learn from one part of the people, judge by the other, all on one budget."""

# %% [markdown]
# # The data scientist
# Split the people, fit a model, and judge it by noisy sums. No row leaves the curator. All data here are made up.

# %%
import numpy as np
import pyarrow as pa

import sulq
from sulq import Epsilon, Unit
from sulq.learn import LogisticRegression, cross_validate

rng = np.random.default_rng()
rows = 30_000
age, income = rng.integers(18, 90, rows), rng.gamma(4.0, 12_000, rows).clip(0, 200_000)
chance = 1 / (1 + np.exp(-(0.06 * (age - 50) - 0.00003 * (income - 48_000))))
table = pa.table({"id": range(rows), "age": age, "income": income, "ill": rng.random(rows) < chance})
db = sulq.connect(
    table,
    columns={
        "age": sulq.Int(18, 90, missing=False),
        "income": sulq.Real(0, 200_000, missing=False),
        "ill": sulq.Bool(missing=False),
    },
    unit=Unit("id"),
    budget=Epsilon(10),
)

# %% [markdown]
# ## Two parts of the people
# A public hash of the person divides them; nobody learns how many are in either part but by asking.

# %%
train, test = db.split(test=0.25)
model = LogisticRegression().fit(train[["age", "income"]], train["ill"], spend=Epsilon(1))
print(model.coef_, model.spent_)

# %% [markdown]
# ## How good it is
# Scores of private rows cost, and come with an interval.

# %%
print(model.score(test[["age", "income"]], test["ill"], spend=Epsilon(0.5)))

# %%
model.confusion(test[["age", "income"]], test["ill"], spend=Epsilon(0.5))

# %%
curve = model.roc(test[["age", "income"]], test["ill"], spend=Epsilon(1))
print(curve)
curve.plot()
# %% [markdown]
# ## Cross-validation by people
# Folds are parts of the people; fits add up, and what each costs is itemised.

# %%
print(cross_validate(LogisticRegression(), db[["age", "income"]], db["ill"], folds=3, spend=Epsilon(3)))

# %% [markdown]
# ## Rows for everybody
# Synthetic rows from the same budget, for whoever wants to draw pictures.

# %%
made = sulq.release.aim(db, ["age", "ill"], rows=1_000, spend=Epsilon(1))
print(made)
made.to_pandas().head()

# %%
print(db.budget)
db.close()
