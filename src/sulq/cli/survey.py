"""Made-up people for the demonstration: a health survey of 100,000 with one to four visits each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sulq.language.domain import Bool, Category, Column, Date, Int, Real

CITIES = ("Haifa", "Jerusalem", "Lod", "Nazareth", "Yafo")
COLUMNS: dict[str, Column] = {
    "age": Int(0, 110),
    "city": Category(CITIES),
    "smoker": Bool(),
    "income": Real(0, 300_000),
    "visit": Date("2024-01-01", "2025-12-31"),
    "pressure": Int(60, 220),
    "cost": Real(0, 20_000),
}


def survey(people: int, random: np.random.Generator) -> pa.Table:
    """A table of visits; age, city and smoking hang together with blood pressure, income and cost."""
    age = (108 * random.beta(1.5, 2.6, people)).round()
    city = random.choice(len(CITIES), people, p=(0.24, 0.36, 0.08, 0.12, 0.20))
    smoker = random.random(people) < np.where((age > 17) & (age < 70), 0.24 - 0.03 * (city == 1), 0.06)
    wealth = np.array([1.0, 0.92, 0.78, 0.74, 1.22])[city]
    income = np.clip(random.lognormal(11.0, 0.62, people) * wealth * (age > 17), 0, 300_000)
    person = np.repeat(np.arange(people), random.choice([1, 2, 3, 4], people, p=(0.55, 0.25, 0.14, 0.06)))
    rows = len(person)
    pressure = 104 + 0.42 * age[person] + 7.5 * smoker[person] + random.normal(0, 13, rows)
    cost = np.clip(random.lognormal(6.0 + 0.012 * age[person] + 0.25 * smoker[person], 0.8, rows), 0, 20_000)
    day = np.datetime64("2024-01-01") + random.integers(0, 731, rows).astype("timedelta64[D]")
    unknown = random.random(rows) < 0.02  # some readings are missing, as in life
    return pa.table(
        {
            "respondent": person,
            "age": age[person].astype(np.int32),
            "city": pa.array(np.array(CITIES)[city[person]]),
            "smoker": smoker[person],
            "income": income[person].round(2),
            "visit": pa.array(day),
            "pressure": pa.array(np.clip(pressure, 60, 220).round().astype(np.int32), mask=unknown),
            "cost": cost.round(2),
        }
    )
