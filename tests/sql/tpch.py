"""The eight tables of TPC-H, generated small: customers are the people, what suppliers offer is public.

Only names, domains and links are those of the benchmark; every row is drawn here.
"""

from __future__ import annotations

import datetime
import random

import pandas as pd

import sulq
from sulq import Date, Int, Real, Text, Unit

ROWS = 40  # kept rows of a customer, in each table
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3, "GERMANY": 3,
    "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4, "KENYA": 0, "MOROCCO": 0,
    "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3,
    "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
INSTRUCTIONS = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]
TYPES = [
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
CONTAINERS = [
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
]
BRANDS = [f"Brand#{i}{j}" for i in range(1, 6) for j in range(1, 6)]
MAKERS = [f"Manufacturer#{i}" for i in range(1, 6)]
COLOURS = ["almond", "forest", "green", "ivory", "lemon", "navy", "red", "tan"]
DAYS = Date("1992-01-01", "1998-12-31")

CUSTOMERS, ORDERS, PARTS, SUPPLIERS = 60, 300, 80, 20
COLUMNS: dict[str, dict[str, object]] = {
    "customer": {
        "c_custkey": Int(1, CUSTOMERS), "c_name": Text(), "c_address": Text(), "c_nationkey": Int(0, 24),
        "c_phone": Text(), "c_acctbal": Real(-1000, 10_000, grid=1 / 64), "c_mktsegment": SEGMENTS, "c_comment": Text(),
    },
    "orders": {
        "o_orderkey": Int(1, ORDERS), "o_custkey": Int(1, CUSTOMERS), "o_orderstatus": ["F", "O", "P"],
        "o_totalprice": Real(0, 600_000, grid=1 / 4), "o_orderdate": DAYS, "o_orderpriority": PRIORITIES,
        "o_clerk": Text(), "o_shippriority": Int(0, 1), "o_comment": Text(),
    },
    "lineitem": {
        "l_orderkey": Int(1, ORDERS), "l_partkey": Int(1, PARTS), "l_suppkey": Int(1, SUPPLIERS),
        "l_linenumber": Int(1, 7), "l_quantity": Int(1, 50), "l_extendedprice": Real(0, 120_000, grid=1 / 16),
        "l_discount": Real(0, 0.125, grid=1 / 128), "l_tax": Real(0, 0.125, grid=1 / 128),
        "l_returnflag": ["A", "N", "R"], "l_linestatus": ["F", "O"], "l_shipdate": DAYS, "l_commitdate": DAYS,
        "l_receiptdate": DAYS, "l_shipinstruct": INSTRUCTIONS, "l_shipmode": MODES, "l_comment": Text(),
    },
    "part": {
        "p_partkey": Int(1, PARTS), "p_name": Text(55), "p_mfgr": MAKERS, "p_brand": BRANDS, "p_type": TYPES,
        "p_size": Int(1, 50), "p_container": CONTAINERS,
        "p_retailprice": Real(0, 2100, grid=1 / 64), "p_comment": Text(),
    },
    "supplier": {
        "s_suppkey": Int(1, SUPPLIERS), "s_name": Text(), "s_address": Text(), "s_nationkey": Int(0, 24),
        "s_phone": Text(), "s_acctbal": Real(-1000, 10_000, grid=1 / 64), "s_comment": Text(),
    },
    "partsupp": {
        "ps_partkey": Int(1, PARTS), "ps_suppkey": Int(1, SUPPLIERS), "ps_availqty": Int(1, 9999),
        "ps_supplycost": Real(0, 1000, grid=1 / 64), "ps_comment": Text(),
    },
    "nation": {"n_nationkey": Int(0, 24), "n_name": list(NATIONS), "n_regionkey": Int(0, 4), "n_comment": Text()},
    "region": {"r_regionkey": Int(0, 4), "r_name": REGIONS, "r_comment": Text()},
}  # fmt: skip
KEYS = {
    "customer": "c_custkey", "orders": "o_orderkey", "part": "p_partkey", "supplier": "s_suppkey",
    "nation": "n_nationkey", "region": "r_regionkey",
}  # fmt: skip
PERSONS = {"orders": "o_custkey", "lineitem": "l_custkey"}
REFERENCES = {"lineitem": {"l_orderkey": "orders"}}
PUBLIC = ["part", "supplier", "partsupp", "nation", "region"]


def tables(rng: random.Random) -> dict[str, pd.DataFrame]:
    """All eight tables, within their declared bounds and on their grids."""

    def money(low: int, high: int, grid: int) -> float:
        return rng.randrange(low * grid, high * grid + 1) / grid

    def day(low: int = 0, high: int = 2400) -> datetime.date:
        return datetime.date(1992, 1, 1) + datetime.timedelta(rng.randrange(low, high))

    phones = [f"{10 + i}-{rng.randrange(100, 999)}" for i in range(25)]
    customer = [
        (i, f"Customer#{i:09}", f"street {i}", i % 25, phones[i % 25], money(-900, 9000, 64), rng.choice(SEGMENTS), "-")
        for i in range(1, CUSTOMERS + 1)
    ]
    orders, lines = [], []
    for key in range(1, ORDERS + 1):
        who, start = rng.randrange(1, CUSTOMERS + 1), rng.randrange(0, 2200)
        date = datetime.date(1992, 1, 1) + datetime.timedelta(start)
        flags = rng.choice("FOP"), money(1000, 400_000, 4)
        comment = rng.choice(("quick", "special packages requests", "final"))
        orders.append((key, who, *flags, date, rng.choice(PRIORITIES), f"Clerk#{key % 9}", 0, comment))
        for number in range(1, rng.randrange(2, 5)):
            ship, commit = (date + datetime.timedelta(rng.randrange(1, 120)) for _ in range(2))
            lines.append(
                (
                    key, rng.randrange(1, PARTS + 1), rng.randrange(1, SUPPLIERS + 1), number, rng.randrange(1, 51),
                    money(900, 100_000, 16), rng.randrange(0, 13) / 128, rng.randrange(0, 11) / 128, rng.choice("ANR"),
                    rng.choice("FO"), ship, commit, ship + datetime.timedelta(rng.randrange(1, 30)),
                    rng.choice(INSTRUCTIONS), rng.choice(MODES), "-", who,
                )
            )  # fmt: skip
    part = [
        (
            i, " ".join(rng.sample(COLOURS, 3)), rng.choice(MAKERS), rng.choice(BRANDS), rng.choice(TYPES),
            rng.randrange(1, 51), rng.choice(CONTAINERS), money(900, 2000, 64), "-",
        )
        for i in range(1, PARTS + 1)
    ]  # fmt: skip
    supplier = [
        (i, f"Supplier#{i:09}", f"road {i}", rng.randrange(25), phones[i], money(-900, 9000, 64), "-")
        for i in range(1, SUPPLIERS + 1)
    ]
    offers = {(i, (i * 7 + j * 3) % SUPPLIERS + 1) for i in range(1, PARTS + 1) for j in range(4)}
    partsupp = [(p, s, rng.randrange(1, 10_000), money(1, 999, 64), "-") for p, s in sorted(offers)]
    nation = [(i, name, region, "-") for i, (name, region) in enumerate(NATIONS.items())]
    region = [(i, name, "-") for i, name in enumerate(REGIONS)]
    made = {
        "customer": customer, "orders": orders, "lineitem": lines, "part": part, "supplier": supplier,
        "partsupp": partsupp, "nation": nation, "region": region,
    }  # fmt: skip
    return {
        name: pd.DataFrame(rows, columns=[*COLUMNS[name], *(["l_custkey"] if name == "lineitem" else [])])
        for name, rows in made.items()
    }


def opened(data: dict[str, pd.DataFrame]) -> sulq.Database:
    """The tables as a synthetic database whose people are the customers."""
    return sulq.connect(
        data, columns=COLUMNS, unit=Unit("c_custkey", rows=ROWS), keys=KEYS, persons=PERSONS, public=PUBLIC,
        references=REFERENCES, budget=sulq.EpsilonDelta(900, 1e-2), synthetic=True,
    )  # fmt: skip
