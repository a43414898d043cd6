"""What a refused construct was called in the text, and what can be written in its place.

The parser has names of its own for what it reads (STRING_AGG is its GroupConcat), which nobody wrote. A refusal uses
the words of the text, or of SQL's grammar; and says what to write instead.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from sqlglot import exp

from sulq.sql.parse.tree import place

MAX_QUOTED_LETTERS: Final = 60
CONSTRUCTS: Final[dict[type[exp.Expr], str]] = {
    exp.Window: "A window function (OVER)",
    exp.Any: "ANY",
    exp.All: "ALL",
    exp.Tuple: "A list in parentheses",
    exp.Placeholder: "A parameter",
    exp.Parameter: "A parameter",
    exp.SessionParameter: "A parameter",
    exp.Bracket: "A subscript",
    exp.Array: "A list in brackets",
    exp.Except: "EXCEPT",
    exp.Intersect: "INTERSECT",
    exp.Values: "VALUES",
    exp.Lateral: "A lateral subquery",
    exp.LimitOptions: "FETCH",
    exp.Unnest: "UNNEST",
    exp.Collate: "COLLATE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Overlaps: "OVERLAPS",
    exp.JSON: "IS JSON",
    exp.BitwiseNot: "The operator ~",
    exp.Distinct: "DISTINCT here",
    exp.Order: "ORDER BY inside a function",
    exp.Alias: "AS here",
    exp.Star: "A star here",
    exp.Dot: "A name with this many points",
    exp.Rollup: "ROLLUP here",
    exp.Cube: "CUBE here",
    exp.GroupingSets: "GROUPING SETS here",
    exp.Select: "SELECT",
    exp.Union: "UNION",
    exp.Group: "GROUP BY",
    exp.With: "WITH",
    exp.Join: "JOIN",
    exp.Table: "A table",
    exp.Subquery: "A subquery",
    exp.TableAlias: "A table's alias",
    exp.Fetch: "FETCH",
    exp.Limit: "LIMIT",
    exp.Offset: "OFFSET",
    exp.Ordered: "ORDER BY",
    exp.Cast: "CAST",
    exp.TryCast: "CAST",
    exp.DataType: "A type",
    exp.Between: "BETWEEN",
    exp.In: "IN",
    exp.Case: "CASE",
    exp.Interval: "INTERVAL",
    exp.RawString: "A quotation in dollar signs",
    exp.HexString: "A number in hexadecimal",
    exp.BitString: "A bit string",
    exp.ByteString: "A string with escapes",
    exp.Unicode: "A string with escapes",
    exp.National: "A national string",
}
# A part of a construct: what SQL calls it, and what to do instead.
PARTS: Final[dict[str, tuple[str, str]]] = {
    "kind": ("AS", "List the columns alone."),
    "rollup": ("WITH", "Write GROUP BY ROLLUP (...)."),
    "cube": ("WITH", "Write GROUP BY CUBE (...)."),
    "connect": ("CONNECT BY", "Write each step as a query of its own in WITH."),
    "distribute": ("DISTRIBUTE BY", "Leave it out."),
    "cluster": ("CLUSTER BY", "Leave it out."),
    "sort": ("SORT BY", "Use ORDER BY."),
    "hint": ("a hint", "Leave it out."),
    "final": ("FINAL", "Leave FINAL out."),
    "bigint": ("another argument", "Leave the argument out."),
    "locks": ("a lock (FOR ...)", "Leave it out: a query locks nothing."),
    "into": ("INTO", "Leave INTO out: what is asked is returned, and nothing is written."),
    "windows": ("WINDOW", "Group and aggregate; of the groups, ORDER BY and LIMIT pick the largest."),
    "qualify": ("QUALIFY", "Group, and filter the groups: HAVING."),
    "laterals": ("a lateral subquery", "Join the table by the person's column."),
    "pivots": ("PIVOT", "Write a column for each value: COUNT(*) FILTER (WHERE x = 'a')."),
    "sample": ("TABLESAMPLE", "Leave it out: every row is counted, and the price does not grow with their number."),
    "recursive": ("RECURSIVE", "Write each step as a query of its own in WITH."),
    "ordinality": ("WITH ORDINALITY", "Leave it out: rows have no places."),
    "only": ("ONLY", "Leave ONLY out."),
    "expressions": ("these values", "Give one value."),
    "order": ("ORDER BY", "Leave it out: a sum or count does not depend on the order of rows."),
    "limit": ("LIMIT", "Leave it out, or put it at the end of the query."),
    "having": ("HAVING", "Put HAVING after GROUP BY."),
    "all": ("ALL", "Name the columns to group by."),
    "totals": ("TOTALS", "Use GROUP BY ROLLUP (...)."),
    "on": ("ON", "Put the condition into WHERE."),
    "db": ("a schema", "Write the table's name alone."),
    "catalog": ("a database", "Write the table's name alone."),
    "except_": ("EXCEPT", "Name the columns one by one."),
    "replace": ("REPLACE", "Name the columns one by one."),
    "rename": ("RENAME", "Name the columns one by one: x AS y."),
    "symmetric": ("SYMMETRIC", "Put the smaller end first."),
    "unnest": ("UNNEST", "Write the values: x IN (1, 2, 3)."),
    "field": ("ANY of a list", "Write the values: x IN (1, 2, 3)."),
    "collation": ("COLLATE", "Leave COLLATE out: texts are compared by their letters."),
    "format": ("FORMAT", "Leave it out: dates are written YYYY-MM-DD."),
    "distinct": ("DISTINCT", "Leave DISTINCT out."),
    "with_ties": ("WITH TIES", "Leave WITH TIES out."),
    "percent": ("PERCENT", "Give a number of rows."),
    "with_": ("WITH", "Put WITH before the first SELECT."),
    "joins": ("a join", "Write the join without parentheses."),
    "columns": ("a list of columns", "Name the columns in the SELECT."),
    "scale": ("another argument", "Leave the argument out."),
    "when": ("WHEN", "Leave WHEN out."),
    "global_": ("GLOBAL", "Leave GLOBAL out."),
    "by_name": ("BY NAME", "List the columns of both queries in one order."),
    "side": ("LEFT, RIGHT or FULL", "Write UNION alone."),
    "match": ("MATCH", "Write UNION alone."),
    "search": ("SEARCH", "Leave SEARCH out."),
}
CASE: Final = "Write CASE WHEN ... THEN ... ELSE ... END."
LISTED: Final = "Group by the column instead: each of its values comes back as a row."
CLOCK: Final = "Write the date itself: DATE '2026-01-31', or TIMESTAMP '2026-01-31 12:00:00'."
RANKED: Final = "Group and aggregate; of the groups, ORDER BY and LIMIT pick the largest."
PATTERN: Final = "Use LIKE, or POSITION and SUBSTRING."
SHOWN: Final = "Ask for the number or date itself (EXTRACT, DATE_TRUNC), and write the answer as you like."
ONE_VALUE: Final = "Use MIN or MAX: no row is first or last."
SPAN: Final = "Subtract dates, which gives days, or compare with a date an INTERVAL away."
LISTS: Final = "Write the values: x IN (1, 2, 3)."
BITS: Final = "Join conditions with AND, OR and NOT; there are no operators on bits."
REMEDIES: Final[dict[str, str]] = {
    **dict.fromkeys(("decode", "if", "iif", "iff", "choose", "nvl2", "switch"), CASE),
    **dict.fromkeys(("string_agg", "array_agg", "group_concat", "listagg", "json_agg", "jsonb_agg", "list"), LISTED),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg", "xmlagg", "histogram", "unnest", "mode"), LISTED),
    **dict.fromkeys(("now", "today", "current_date", "current_time", "current_timestamp", "localtime"), CLOCK),
    **dict.fromkeys(("localtimestamp", "getdate", "clock_timestamp", "statement_timestamp", "sysdate"), CLOCK),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "lag", "lead", "ntile", "percent_rank", "cume_dist"), RANKED),
    **dict.fromkeys(("regexp_replace", "regexp_matches", "regexp_like", "regexp_substr", "regexp_match"), PATTERN),
    **dict.fromkeys(("split_part", "string_to_array", "regexp_count", "instr", "contains", "charindex"), PATTERN),
    **dict.fromkeys(("to_char", "format", "date_format", "strftime", "to_json", "row_to_json", "quote_literal"), SHOWN),
    **dict.fromkeys(("first", "last", "any_value", "first_value", "last_value", "nth_value", "arbitrary"), ONE_VALUE),
    **dict.fromkeys(("age", "datediff", "date_diff", "timestampdiff", "date_add", "dateadd", "date_sub"), SPAN),
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), "Group by the column, and sort the groups."),
    **dict.fromkeys(("approx_count_distinct", "approx_distinct", "hll"), "Use COUNT(DISTINCT x)."),
    **dict.fromkeys(("approx_quantile", "approx_percentile", "percentile_approx"), "Use QUANTILE(x, 0.5)."),
    **dict.fromkeys(("to_date", "str_to_date", "to_timestamp", "parse_date"), "Declare the column as a Date."),
    **dict.fromkeys(("isnull", "notnull"), "Write x IS NULL."),
    **dict.fromkeys(("nvl", "ifnull"), "Use COALESCE(x, 0)."),
    **dict.fromkeys(("date", "timestamp"), "Use CAST(x AS DATE) or CAST(x AS TIMESTAMP)."),
    **dict.fromkeys(("date_bin", "time_bucket"), "Use DATE_TRUNC('hour', x)."),
    **dict.fromkeys(("generate_series", "range", "sequence"), "Group by the value: every declared key comes back."),
    **dict.fromkeys(("random", "rand", "uuid", "gen_random_uuid"), "Leave it out; answers have their noise already."),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), BITS),
    **dict.fromkeys(("count_if", "countif"), "Use COUNT(*) FILTER (WHERE ...)."),
    **dict.fromkeys(("sum_if", "sumif"), "Use SUM(x) FILTER (WHERE ...)."),
    "product": "Sum the logarithms: EXP(SUM(LN(x))).",
    "log2": "Use LOG(2, x).",
    "log10": "Use LOG(x).",
    "square": "Write x * x.",
    "between symmetric": "Put the smaller end first.",
}
BY_CONSTRUCT: Final[dict[type[exp.Expr], str]] = {
    exp.Window: RANKED,
    exp.Any: LISTS,
    exp.All: LISTS,
    exp.Tuple: "Compare the columns one by one, joined by AND.",
    exp.Placeholder: "Write the value into the text.",
    exp.Parameter: "Write the value into the text.",
    exp.SessionParameter: "Write the value into the text.",
    exp.Bracket: "Declare a column of its own for each item.",
    exp.Array: LISTS,
    exp.Except: "Say what is left out in WHERE.",
    exp.Intersect: "Say what both have in WHERE.",
    exp.Values: "Name a registered table in FROM, and values as x IN (1, 2, 3).",
    exp.Lateral: "Join the table by the person's column.",
    exp.Collate: "Leave COLLATE out: texts are compared by their letters.",
    exp.AtTimeZone: "Leave AT TIME ZONE out: moments are in UTC; add an INTERVAL of hours for another clock.",
    exp.SimilarTo: PATTERN,
    exp.RegexpLike: PATTERN,
    exp.RegexpILike: PATTERN,
    exp.Overlaps: "Compare the ends: a <= d AND c <= b.",
    exp.ArrayOverlaps: BITS,
    exp.BitwiseAnd: BITS,
    exp.BitwiseOr: BITS,
    exp.BitwiseXor: BITS,
    exp.BitwiseNot: BITS,
    exp.BitwiseLeftShift: BITS,
    exp.BitwiseRightShift: BITS,
    exp.If: CASE,
    exp.Distinct: "Use COUNT(DISTINCT x), or GROUP BY x.",
    exp.Order: "Leave it out: a sum or count does not depend on the order of rows.",
    exp.Alias: "Name results in the SELECT list alone.",
    exp.Star: "Name the columns.",
    exp.Dot: "Write table.column.",
    exp.Subquery: "Give the subquery a name in WITH.",
    exp.RawString: "Write the text in single quotes.",
    exp.HexString: "Write the number in decimal digits.",
    exp.BitString: "Write the number in decimal digits.",
    exp.ByteString: "Write the text in plain single quotes.",
    exp.Unicode: "Write the text in plain single quotes.",
    exp.National: "Write the text in plain single quotes.",
}
_TYPE: Final = r"((?:timestamp|time)\s+with(?:out)?\s+time\s+zone|(?:bit|character)\s+varying|\w+)"
SIGNS: Final = re.compile(r"[\s)]*([^\w\s()'\"]+)")
AFTER: Final = re.compile(rf"[\s)]*(?:as\b|::)\s*{_TYPE}", re.IGNORECASE)
BEFORE: Final = re.compile(rf"\b{_TYPE}\s*$", re.IGNORECASE)
OTHERWISE: Final = "Say it by arithmetic, CASE, LIKE or a function of the list in docs/reference/sql.md."
OPERATORS: Final = "The operators are + - * / % ^ ||, comparisons, AND, OR, NOT, LIKE, IN, BETWEEN and IS."
FUNCTIONS: Final = (
    *("abs", "floor", "ceil", "ceiling", "round", "trunc", "sqrt", "cbrt", "ln", "log", "exp", "power", "mod", "div"),
    *("sign", "degrees", "radians", "greatest", "least", "coalesce", "nullif", "width_bucket", "clip", "lower"),
    *("upper", "length", "trim", "ltrim", "rtrim", "left", "right", "substring", "position", "replace", "concat"),
    *("starts_with", "extract", "date_trunc", "date_part", "make_date", "cast", "count", "sum", "avg", "min", "max"),
    *("median", "quantile", "percentile_cont", "percentile_disc", "variance", "var_pop", "var_samp", "stddev"),
    *("stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr", "bool_and", "bool_or"),
)


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The places of a function's name, as it was written."""
    if "word" in node.meta:
        start, end = node.meta["word"]
        return int(start), int(end)
    if isinstance(node, exp.Func) and "start" in node.meta:
        return int(node.meta["start"]), int(node.meta["end"])
    return None


def _last(node: exp.Expr) -> int:
    """The last place in the text that is known of a node's parts."""
    return max((int(item.meta["end"]) for item in node.walk() if "end" in item.meta), default=-1)


def _operator(node: exp.Expr, text: str) -> str:
    """The sign or words between the two sides of an operator; empty where there is none."""
    sides = node.args.get("this"), node.args.get("expression")
    if not isinstance(node, exp.Binary) or not all(isinstance(side, exp.Expr) for side in sides):
        return ""
    start, end = _last(node.this), place(node.expression)
    if start < 0 or (end is not None and end <= start):
        return ""
    if end is None:  # the parser keeps no place of a path such as 'a' of x -> 'a'
        found = SIGNS.match(text, start + 1)
        return "" if found is None else found.group(1)
    return " ".join(text[start + 1 : end].replace("(", " ").replace(")", " ").split())


def word(node: exp.Expr, text: str) -> str:
    """A function's name as it was written, in small letters; empty for anything else."""
    found = span(node)
    if found is None or type(node) in CONSTRUCTS:
        return ""
    name = text[found[0] : found[1] + 1].lower()
    return name if name.replace("_", "").isalnum() else ""


def written(node: exp.Expr, text: str) -> str:
    """What a node was called in the text, or what SQL's grammar calls it."""
    if type(node) in CONSTRUCTS:
        return CONSTRUCTS[type(node)]
    name = word(node, text)
    if name:
        found = span(node)
        called = found is not None and text[found[1] + 1 :].lstrip().startswith("(")
        return f"{name}()" if called else name.upper()
    if type(node) is exp.Anonymous:
        return f"{str(node.this)[:MAX_QUOTED_LETTERS].lower()}()"
    sign = _operator(node, text)
    if sign:
        return f"The operator {sign[:MAX_QUOTED_LETTERS]}"
    start, end = place(node), _last(node)
    quoted = "" if start is None else " ".join(text[start : end + 1].split())
    if not quoted:
        return "This"
    return repr(quoted if len(quoted) <= MAX_QUOTED_LETTERS else f"{quoted[:MAX_QUOTED_LETTERS]}...")


def remedy(node: exp.Expr, text: str) -> str:
    """What to write instead of a refused construct."""
    if type(node) in BY_CONSTRUCT:
        return BY_CONSTRUCT[type(node)]
    name = word(node, text) or (str(node.this).lower() if type(node) is exp.Anonymous else "")
    if name in REMEDIES:
        return REMEDIES[name]
    near = difflib.get_close_matches(name, FUNCTIONS, 1, 0.75) if name else []
    if near and near[0] != name:
        return f"Did you mean {near[0].upper()}? {OTHERWISE}"
    return OPERATORS if _operator(node, text) else OTHERWISE


def type_name(node: exp.Expr, text: str) -> str:
    """The type of a cast as it was written."""
    start = _last(node.this) if isinstance(node.this, exp.Expr) else -1
    found = None if start < 0 else AFTER.match(text, start + 1) or BEFORE.search(text, 0, place(node.this) or 0)
    return "this type" if found is None else " ".join(found.group(1).split())


def part(name: str) -> tuple[str, str]:
    """What SQL calls a part of a construct that is not read, and what to do about it."""
    return PARTS.get(name, ("a part that is not read", "Leave the part out that stands here."))
