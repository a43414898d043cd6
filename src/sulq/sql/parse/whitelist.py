"""Which node classes of the parser's tree are read, and what they are called here."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# Operators and functions of one value that the parser calls by the name we do.
ALIKE: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.Abs, exp.Floor, exp.Ceil, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Exp, exp.Sign, exp.Cos, exp.Sin, exp.Tan),
    *(exp.Degrees, exp.Radians, exp.Lower, exp.Upper, exp.Length, exp.Neg, exp.Not),
)
# Operators and functions of two values, `this` and `expression`.
BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "mod",
    exp.IntDiv: "div",
    exp.Pow: "power",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct from",
    exp.NullSafeNEQ: "is distinct from",
    exp.DPipe: "||",
    exp.StartsWith: "starts_with",
    **{kind: str(kind.key) for kind in (exp.Nullif, exp.Left, exp.Right, exp.Log)},
}
# An operator or function, and the parts of it that are read, in order; "*" is a list of any length.
CALLS: Final[dict[type[exp.Expr], tuple[str, tuple[str, ...]]]] = {
    **{kind: (str(kind.key), ("this",)) for kind in ALIKE},
    **{kind: (op, ("this", "expression")) for kind, op in BINARY.items()},
    exp.Between: ("between", ("this", "low", "high")),
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Pi: ("pi", ()),
    exp.Rand: ("random", ()),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
    **{kind: (str(kind.key), ("this", "*")) for kind in (exp.Coalesce, exp.Greatest, exp.Least)},
    exp.Concat: ("concat", ("*",)),
}
# Parts that say nothing in this dialect: set by the parser for every such node.
SILENT: Final[dict[type[exp.Expr], set[str]]] = {
    exp.Div: {"typed", "safe"},
    exp.DPipe: {"safe"},
    exp.Concat: {"safe", "coalesce"},
    exp.Greatest: {"ignore_nulls"},
    exp.Least: {"ignore_nulls"},
    exp.Count: {"big_int"},
    exp.DataType: {"nested"},
}
# Operators whose result has no name.
NAMELESS: Final = ("+", "-", "*", "/", "div", "neg", "=", "<>", "<", "<=", ">", ">=", "not", "between", "||")
PARTS: Final = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second)
CLOCK_PARTS: Final = (
    *("millennium", "century", "decade", "year", "isoyear", "quarter", "month", "week", "day", "hour", "minute"),
    *("second", "dow", "isodow", "doy", "epoch"),
)
AGGREGATES: Final[dict[type[exp.Expr], str]] = {
    **{kind: kind.sql_name().lower() for kind in (exp.Sum, exp.Min, exp.Max, exp.CovarPop, exp.CovarSamp, exp.Corr)},
    **{
        kind: kind.sql_name().lower()
        for kind in (exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)
    },
    **{kind: kind.sql_name().lower() for kind in (exp.RegrSxx, exp.RegrSyy, exp.RegrSxy)},
    exp.Avg: "mean",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "std_samp",
    exp.StddevSamp: "std_samp",
    exp.StddevPop: "std_pop",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}
REGRESSIONS: Final = tuple(
    f"regr_{name}" for name in ("slope", "intercept", "r2", "count", "avgx", "avgy", "sxx", "syy", "sxy")
)
PAIRS: Final = ("covar_pop", "covar_samp", "corr", *REGRESSIONS)
ANONYMOUS_AGGREGATES: Final = {
    "var": "var_samp",
    "varp": "var_pop",
    "stdev": "std_samp",
    "stdevp": "std_pop",
    "every": "bool_and",
}
QUANTILES: Final[dict[type[exp.Expr], str]] = {exp.PercentileCont: "quantile_cont", exp.PercentileDisc: "quantile_disc"}
ANONYMOUS_CALLS: Final = {"div": 2, "clip": 3}  # and their numbers of arguments
CASTS: Final = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT"), "int"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "float"),
    **dict.fromkeys(("TEXT", "VARCHAR"), "text"),
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
