"""Random FROM clauses: tables, joins, subqueries, unions, different rows, a person's own rows, WITH queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tests.sql.conditions import PEOPLE, VISITS, Conditions, Source

# Three tables; with regions in front, in the middle, and in a condition of their own.
THREE = (
    "people p JOIN visits v ON p.pid = v.pid {how} regions r ON r.code = p.region",
    "(people p JOIN regions r ON p.region = r.code) {how} visits v ON v.pid = p.pid",
    "regions r JOIN people p ON p.region = r.code {how} visits v ON v.pid = p.pid AND v.paid",
    (
        "people p {how} (SELECT pid, cost, minutes, kind, paid FROM visits WHERE minutes > 9) v USING (pid) "
        "JOIN regions r ON r.code = p.region"
    ),
)
LISTED = (
    "(SELECT p.pid, age, size, v.cost, minutes, sex, zone, kind, married, paid, educ "
    "FROM regions r, people p, visits v WHERE r.code = p.region AND p.pid = v.pid) AS n"
)
# Two public tables, joined with each other before or after they meet private rows.
PUBLIC = (
    "people p JOIN regions r ON p.region = r.code {how} zones z ON z.name = r.zone",
    "regions r JOIN zones z ON z.name = r.zone JOIN people p ON p.region = r.code",
    "people p JOIN (SELECT code, size, zone, sea FROM regions JOIN zones ON name = zone) r ON r.code = p.region",
)
# Different rows of anything: by the listed columns alone, whatever lies below.
DIFFERENT = (
    "SELECT DISTINCT kind, paid, minutes % 5 AS m FROM visits{where}",
    "SELECT DISTINCT pid, kind, paid, minutes % 5 AS m FROM visits{where}",
    "SELECT DISTINCT v.kind, p.married AS paid, p.educ AS m FROM people p JOIN visits v ON p.pid = v.pid",
    "SELECT DISTINCT p.pid, v.kind, v.paid, p.educ AS m FROM people p JOIN visits v ON p.pid = v.pid",
    "SELECT DISTINCT zone AS kind, married AS paid, size AS m FROM people p JOIN regions ON region = code",
    "SELECT DISTINCT kind, paid, m FROM (SELECT DISTINCT kind, paid, minutes AS m, cost FROM visits) AS i",
    (
        "SELECT DISTINCT kind, most > 30 AS paid, n AS m FROM "
        "(SELECT pid, kind, COUNT(*) AS n, MAX(minutes) AS most FROM visits GROUP BY pid, kind) AS i"
    ),
    (
        "SELECT DISTINCT sex AS kind, married AS paid, educ AS m FROM people "
        "WHERE pid IN (SELECT pid FROM visits WHERE paid)"
    ),
    (
        "SELECT DISTINCT kind, paid, m FROM (SELECT kind, paid, minutes AS m FROM visits UNION ALL "
        "SELECT sex, married, age FROM people) AS i"
    ),
)


class Sources(Conditions):
    """Draws what a query is asked of."""

    def _one(self, *forms: tuple[int, Callable[[], Source]]) -> Source:
        weights = [weight for weight, _ in forms]
        return self.rng.choices([make for _, make in forms], weights)[0]()

    def source(self) -> Source:
        """A table, a join, a subquery, a union, different rows, a person's own rows put together, a WITH query."""
        return self._one(
            (4, lambda: PEOPLE), (3, lambda: VISITS), (3, self._joined), (2, self._lived), (3, self._nested),
            (3, self._own), (2, self._computed), (3, self._united), (4, self._different), (2, self._paired),
            (2, self._with),
        )  # fmt: skip

    def _joined(self) -> Source:
        how = self.rng.choice(("JOIN", "LEFT JOIN"))
        return Source(
            f"people p {how} visits v ON p.pid = v.pid", ["p.age", "v.cost", "v.minutes", "p.income"],
            ["p.sex", "v.kind", "p.married"], ["p.married", "v.paid"], ["p.age", "v.minutes", "p.region"], ["p.born"],
            ["v.seen"], ["p.town"], "p.pid",
        )  # fmt: skip

    def _lived(self) -> Source:
        how = self.rng.choice(("JOIN", "LEFT JOIN"))
        return Source(
            f"people {how} regions ON people.region = regions.code", ["age", "income", "size"],
            ["sex", "zone", "educ"], ["married"], ["age", "regions.size"], ["born"], owner="people.pid",
        )  # fmt: skip

    def _nested(self) -> Source:
        how = self.rng.choice(("JOIN", "LEFT JOIN"))
        pick = self.rng.random()
        if pick < 0.3:
            return Source(
                self.rng.choice(PUBLIC).format(how=how), ["p.age", "size", "p.income"], ["sea", "zone", "p.sex"],
                ["sea", "p.married"], ["p.educ", "r.size"], owner="p.pid",
            )  # fmt: skip
        if pick < 0.45:
            return Source(
                LISTED, ["age", "cost", "size", "minutes"], ["sex", "zone", "kind"], ["married", "paid"],
                ["educ", "minutes"], owner="n.pid",
            )  # fmt: skip
        return Source(
            self.rng.choice(THREE).format(how=how), ["p.age", "v.cost", "r.size", "v.minutes"],
            ["p.sex", "r.zone", "v.kind"], ["p.married", "v.paid"], ["p.educ", "v.minutes"], owner="p.pid",
        )  # fmt: skip

    def _own(self) -> Source:
        key = self.rng.choice(("", ", kind"))
        inner = "COUNT(*) AS n, SUM(cost) AS total, MIN(minutes) AS least, MAX(minutes) AS most"
        where = self._sometimes(0.4, lambda: f" WHERE {self.condition(VISITS)}")
        having = self._sometimes(0.3, lambda: f" HAVING {self.rng.choice(('COUNT(*) > 1', 'MAX(minutes) > 30'))}")
        grouped = f"(SELECT pid{key}, {inner} FROM visits{where} GROUP BY pid{key}{having}) AS own"
        if not key and self.rng.random() < 0.4:
            return Source(
                f"people p LEFT JOIN {grouped} ON own.pid = p.pid", ["n", "total", "p.age", "most"], ["n", "p.sex"],
                ["p.married"], ["n", "most"], owner="p.pid",
            )  # fmt: skip
        return Source(
            grouped, ["n", "total", "least", "most"], ["kind", "n"] if key else ["n"], wholes=["n", "most"],
            owner="own.pid",
        )  # fmt: skip

    def _computed(self) -> Source:
        return Source(
            "(SELECT pid, age + 1 AS older, income / 2 AS half, age % 7 AS left_over, sex, married, born FROM people "
            f"WHERE {self.where(PEOPLE)}) AS t",
            ["older", "half"], ["sex", "married"], ["married"], ["older", "left_over"], ["born"], owner="t.pid",
        )  # fmt: skip

    def _united(self) -> Source:
        both = self.rng.choice(("UNION ALL", "UNION ALL", "UNION"))
        text = self.rng.choice((
            f"SELECT minutes, paid, kind FROM visits {both} SELECT minutes, paid, kind FROM visits WHERE paid",
            f"SELECT minutes, paid, kind FROM visits {both} SELECT age, married, sex FROM people",
            (f"SELECT educ AS minutes, married AS paid, 'home' AS kind FROM people {both} "
            f"SELECT minutes, paid, kind FROM visits WHERE {self.condition(VISITS)}"),
            (f"SELECT v.minutes, p.married AS paid, v.kind FROM people p JOIN visits v ON v.pid = p.pid {both} "
            "SELECT size, NULL, zone FROM people JOIN regions ON code = region"),
        ))  # fmt: skip
        return Source(f"({text}) AS u", ["minutes"], ["kind", "paid"], ["paid"], ["minutes"])

    def _different(self) -> Source:
        """Different rows of anything: by listed columns alone, whatever lies below."""
        where = self._sometimes(0.4, lambda: f" WHERE {self.where(VISITS)}")
        text = self.rng.choice(DIFFERENT).format(where=where)
        owner = "d.pid" if re.search(r"DISTINCT (p\.)?pid", text) else None
        return Source(f"({text}) AS d", ["m"], ["kind", "paid"], ["paid"], ["m"], owner=owner)

    def _paired(self) -> Source:
        alike = " AND a.kind = b.kind"
        more = self.rng.choice(("", alike, " AND a.minutes < b.minutes", f"{alike} AND b.paid"))
        return Source(
            f"visits a JOIN visits b ON a.pid = b.pid{more}", ["a.cost", "b.minutes", "b.cost"], ["a.kind", "b.paid"],
            ["a.paid", "b.paid"], ["a.minutes", "b.minutes"], owner="a.pid",
        )  # fmt: skip

    def _with(self) -> Source:
        first = f"WITH c AS (SELECT pid, age, educ, sex, married, region FROM people WHERE {self.where(PEOPLE)})"
        alone = Source("c", ["age", "educ"], ["sex", "married"], ["married"], ["age", "region"], owner="c.pid")
        return self.rng.choice((
            replace(alone, before=f"{first} "),
            replace(alone, before=f"{first}, d AS (SELECT * FROM c WHERE age > 20) ", text="d AS c"),
            Source(
                "c JOIN visits v ON v.pid = c.pid", ["age", "cost"], ["sex", "kind"], ["married", "v.paid"],
                ["minutes", "educ"], owner="c.pid", before=f"{first} ",
            ),
            Source(
                "c AS a JOIN c AS b ON a.pid = b.pid", ["a.age", "b.educ"], ["a.sex", "b.married"], ["a.married"],
                ["a.educ", "b.age"], owner="a.pid", before=f"{first} ",
            ),
        ))  # fmt: skip
