"""The rows that a statistic of the whole table reads: listed by a certified statement, or refused.

Source: docs/theory/kernel.md; SR1, SR5, SR11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sulq.kernel.facts import HASH, INTEGERS, PLACE, Facts, Refused
from sulq.kernel.matrix import text
from sulq.kernel.relations import rows
from sulq.kernel.tree import Node, parse
from sulq.kernel.whole.functions import Aggregated, Declared, Owned, declared

if TYPE_CHECKING:
    from sulq.kernel.whole.asked import Asked


def altered(asked: Asked, sql: str, facts: Facts, owners: Mapping[str, Owned]) -> int:
    """How many of the rows that a statement lists one person alters; Refused where it does not list what is read.

    Privacy: the statement is certified as any other, so no row is made of two persons'. A block is told by the hash
    that all of a person's rows have; a declared function sees all rows of its own columns, each in its place if placed.
    """
    statistic = asked.statistic
    relation = rows(sql, facts)
    values = relation.columns.values()
    if len(values) != statistic.columns or not all(each.type in INTEGERS and each.fits("BIGINT") for each in values):
        raise Refused("other columns than a statistic reads")
    if isinstance(statistic, Aggregated) and not _kept(parse(sql), HASH):
        raise Refused("blocks that are told by other than the person's hash")
    if isinstance(statistic, Declared):
        owned = declared(statistic, owners)
        names = (PLACE, *owned.columns) if owned.word.placed else owned.columns
        # Rows past those kept have no owner.
        whose = any(table.owned for table in facts.tables if table.name == owned.table)
        if (owned.word.placed and whose) or sql != text(owned.table, names):
            raise Refused("other rows than a function is declared for")
    return max(relation.altered, 1)  # public rows get noise like any other


def _kept(node: Node, name: str) -> bool:
    """Whether the first column that a SELECT gives is the kept one of a name, by reference alone.

    Its rows are a table's, or of a SELECT of everything: certified statements have no two columns of one name.
    """
    if node.get("type") != "SELECT_NODE":
        return False
    first = node.many("select_list")[0]
    if first.get("class") != "COLUMN_REF" or first.get("alias") or first.get("column_names") != (name,):
        return False
    source = node["from_table"]
    while source.get("type") == "SUBQUERY":
        node = source["subquery"]["node"]
        if node.get("type") != "SELECT_NODE" or node.many("select_list")[0].get("class") != "STAR":
            return False
        source = node["from_table"]
    return bool(source.get("type") == "BASE_TABLE")
