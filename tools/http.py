"""The page of the HTTP API, from the routes themselves and the table of who may use them."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from sulq.service.jobs.calls import offers
from sulq.service.web.routes import OPEN, document
from tests.service.matrix import MATRIX

NOTE: Final = "<!-- Written by `make docs` from the code; edit the code. -->\n"
ROLES: Final = ("owner", "analyst", "auditor")
HEAD: Final = """\
`sulq serve` answers under `/v1`, in JSON alone. Every address but `/v1/health`, `/v1/live` and `/v1/ready` needs a
token: `Authorization: Bearer TOKEN`. The whole document, with all replies, is at `/v1/openapi.json` for whoever has
one.

A body is strict JSON of at most 256 KiB (16 MiB for a structured question and a registration): a field that is not
named here, a key that comes twice or a number that is none is refused. A `spend` is written `{"epsilon": 0.1}`,
`{"epsilon": 1, "delta": 1e-6}`, `{"rho": 0.01}`, or as the canonical JSON has it.

An error is `{"error": {"kind", "code", "message", "remedy"}}` ([codes](errors.md)): 400 the request or question, 401
the token, 402 the budget, 403 the role, 404 nothing there or not yours, 409 an idempotency key or a name, 413 the
body, 429 too often, 503 not ready; nothing is spent on any of them. 500 is the curator's own failure, and the debit
stands. A connection that breaks during an ask leaves it open whether it was charged: ask again with the same `key`.
"""


def page() -> str:
    """Every route: what it does, who may use it, what its body holds."""
    told = document(FastAPI(title="sulq", version="1"), offers())
    parts = ["# HTTP", NOTE, HEAD]
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            row = MATRIX[method.upper(), path]
            who = [role for role in ROLES if getattr(row, role) < 400]
            for_whom = "anyone" if path in OPEN else ", ".join(who)
            parts += [f"## `{method.upper()} {path}`", "", f"{operation['description']} For: {for_whom}.", ""]
            fields = [*_query(operation), *_body(operation)]
            parts += [*fields, ""] if fields else []
    return "\n".join(parts)


def _query(operation: dict[str, Any]) -> list[str]:
    found = [item for item in operation.get("parameters", []) if item["in"] == "query"]
    return [f"- `?{item['name']}=`: {_kind(item['schema'])}" for item in found]


def _body(operation: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    needed = schema.get("required", [])
    return [
        f"- `{name}`: {_kind(field)}{'' if name in needed else ', may be left out'}"
        for name, field in schema.get("properties", {}).items()
    ]


def _kind(schema: dict[str, Any]) -> str:
    """What a field takes, in a word or two."""
    if "epsilon" in str(schema.get("anyOf", [{}])[0]):
        return "a spend" + (" or null" if _null(schema) else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "kind" in schema.get("properties", {}):
        return "canonical JSON"
    inner = schema.get("items") or schema.get("additionalProperties")
    of = f" of {_kind(inner)}" if isinstance(inner, dict) and inner else ""
    words = {"object": "object", "array": "list", "string": "text", "boolean": "true or false", "null": "null"}
    return words.get(str(schema.get("type")), str(schema.get("type"))) + of


def _null(schema: dict[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in schema["anyOf"])
