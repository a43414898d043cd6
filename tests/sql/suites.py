"""Public facts of the tables that other projects' queries speak of, and their queries in our dialect."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sulq.language.domain import Bool, Category, Column, Int, Real, Schema, Text, Timestamp
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import EpsilonDelta, Unit
from tests.data import need

SUITES = ("smartnoise-sql", "pyqrlew-census", "uber-elastic-sensitivity")
BUDGET = EpsilonDelta(10.0, 1e-6)
REGIONS = ("APAC", "EMEA", "LATAM", "NA", "OTHER")
STATES = ("Divorced", "Married", "Never-married", "Separated", "Widowed")
COUNTRIES = ("Cuba", "England", "Holand-Netherlands", "Italy", "United-States")


def facts(*tables: TableFacts, unit: Unit) -> Facts:
    """Facts of several tables, with a budget nobody spends."""
    none = EpsilonDelta(1e-9, 1e-15)
    return Facts(tables[0].schema, unit, BUDGET, none, BUDGET, tables=tables)


def table(name: str, columns: dict[str, Column], **more: object) -> TableFacts:
    """One table's facts."""
    return TableFacts(Schema(name, tuple(columns.items())), **more)  # type: ignore[arg-type]


def devices() -> Facts:
    """The telemetry tables of SmartNoise; the device is the person."""
    crashes = {
        "Refurbished": Bool(),
        "Temperature": Real(25.0, 65.0),
        "Building": Category(tuple(f"B{i}" for i in range(12))),
        "Region": Category(REGIONS),
        "Crashes": Int(0, 10),
    }
    census = {"OEM": Category(tuple(f"M{i}" for i in range(20))), "Memory": Text(), "Disk": Int(100, 10_000)}
    rollouts = {
        "RolloutID": Int(0, 10**6),
        "StartTrial": Timestamp("2019-01-01T00:00:00", "2021-01-01T00:00:00"),
        "EndTrial": Timestamp("2019-01-01T00:00:00", "2021-01-01T00:00:00"),
        "TrialGroup": Int(0, 9),
    }
    small = {"Crashes": Int(0, 10), "Refurbished": Bool()}
    letters = [table(name, small, person="ID") for name in ("A", "B", "BAR", "BAZ", "FOO", "X", "XX")]
    return facts(
        table("Crashes", crashes), table("Census", census), table("Rollouts", rollouts), *letters,
        unit=Unit("DeviceID", rows=3),
    )  # fmt: skip


def pums(*, bounded: bool = True) -> Facts:
    """The PUMS table; without bounds an income is only a text."""
    columns: dict[str, Column] = {
        "age": Int(0, 100),
        "sex": Category(("0", "1")),
        "educ": Category(tuple(str(i) for i in range(1, 17))),
        "race": Category(tuple(str(i) for i in range(1, 7))),
        "income": Int(0, 500_000) if bounded else Text(),
        "married": Category(("0", "1")),
    }
    return facts(table("PUMS", columns, key="pid"), unit=Unit("pid"))


def adult() -> Facts:
    """The Adult table under the name census, one row for each person."""
    columns: dict[str, Column] = {
        "age": Int(17, 90),
        "workclass": Category(("Local-gov", "Private", "State-gov")),
        "fnlwgt": Int(0, 1_500_000),
        "education": Category(("10th", "Bachelors", "Doctorate", "HS-grad", "Masters")),
        "education_num": Int(1, 16),
        "marital_status": Category(STATES),
        "occupation": Category(("Adm-clerical", "Craft-repair", "Sales")),
        "relationship": Category(("Husband", "Wife", "Unmarried")),
        "race": Category(("Black", "White", "Other")),
        "sex": Category(("Female", "Male")),
        "capital_gain": Int(0, 99_999),
        "capital_loss": Int(0, 4_356),
        "hours_per_week": Int(1, 99),
        "native_country": Category(COUNTRIES),
        "income": Category(("<=50K", ">50K")),
    }
    return facts(table("census", columns, key="id"), unit=Unit("id"))


def shop() -> Facts:
    """The orders, customers, products and recommendations of the elastic sensitivity paper."""
    orders = {
        "order_id": Int(1, 10**6),
        "order_date": Int(0, 3_650),
        "customer_id": Int(1, 10**6),
        "product_id": Int(1, 500),
        "quantity": Int(0, 100),
        "order_cost": Real(0, 10_000),
    }
    products = {"product_id": Int(1, 500), "name": Text(), "price": Real(0, 1_000)}
    customers = {"customer_id": Int(1, 10**6), "name": Text(), "address": Int(1, 10**6)}
    recommendations = {"customer_id": Int(1, 10**6), "product_id": Int(1, 500)}
    return facts(
        table("orders", orders, key="order_id"),
        table("customers", customers, key="customer_id"),
        table("products", products, key="product_id", public=True, rows=500),
        table("recommendations", recommendations),
        unit=Unit("customer_id", rows=5),
    )


@dataclass(frozen=True)
class Case:
    """One query of a suite, its facts, and what is expected of it."""

    id: str
    sql: str
    facts: Facts
    accept: bool
    reason: str


# Queries that lose the person as they stand: our dialect asks for the person in the condition.
TRANSLATED = {
    "my_table1.fnlwgt = my_table2.fnlwgt": "my_table1.fnlwgt = my_table2.fnlwgt AND my_table1.id = my_table2.id",
}


def translate(sql: str) -> str:
    """A query in our dialect, which has no schemas."""
    for old, new in TRANSLATED.items():
        sql = sql.replace(old, new)
    return re.sub(r"\b(?:PUMS\.(?=PUMS)|Telemetry\.)", "", sql)


def cases() -> list[Case]:
    """Every query of the suites whose verdict carries over to another private engine."""
    found = []
    for suite in SUITES:
        content = json.loads(need(f"sql/{suite}.json").read_text())
        for query in content["queries"]:
            if query.get("score") != "dp":
                continue
            known = {"pyqrlew-census": adult, "uber-elastic-sensitivity": shop}.get(suite)
            if known is None:
                bounded = "bound" not in str(query.get("mode", ""))
                known = (lambda b=bounded: pums(bounded=b)) if "PUMS" in query["schema"] else devices
            reason = query.get("refusal_kind", "")
            found.append(Case(query["id"], translate(query["sql"]), known(), query["expect"] == "accept", reason))
    return found
