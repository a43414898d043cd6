"""The OpenAPI document, told by the routes themselves: their bodies, replies and every way they refuse."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, WithJsonSchema

from sulq.service.web.requests import Body

_NUMBER: Final = {"type": "number", "exclusiveMinimum": 0}


def _loss(*names: str) -> dict[str, object]:
    fields = {name: dict(_NUMBER) for name in names}
    return {"type": "object", "properties": fields, "required": list(names), "additionalProperties": False}


# A tree of the canonical JSON: which fields it has is said by its kind.
_WIRE: Final = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
_SPEND: Final = {
    "description": "What to pay: canonical JSON, or a short form of it.",
    "anyOf": [_loss("epsilon"), _loss("epsilon", "delta"), _loss("rho"), _WIRE],
}
Tree = Annotated[dict[str, Any], WithJsonSchema(_WIRE)]
Spend = Annotated[dict[str, Any], WithJsonSchema(_SPEND)]
Cells = list[list[str | float | bool | None]]


class ErrorDetail(BaseModel):
    """What went wrong: a stable code, why, and what to do next."""

    kind: str = Field(description="QuestionError, BudgetExceeded, AccessDenied, SetupError or CuratorError.")
    code: str
    message: str
    remedy: str


class ErrorReply(BaseModel):
    """An error."""

    error: ErrorDetail


_ANY: Final = {
    400: "The request or the question is refused; nothing was spent.",
    401: "No token, or one that is not good.",
    403: "The role does not reach this.",
    404: "There is no such thing, or it is not yours to see.",
    429: "Too many calls; see Retry-After.",
    500: "The curator failed; a constant text.",
    503: "Not ready; try again.",
}
_BODY: Final = {
    408: "The body came too slowly.",
    413: "The body is too long.",
    415: "The body is not application/json.",
}
_PAID: Final = {
    402: "The budget does not hold this; nothing was spent.",
    409: "The idempotency key belongs to another question, or its answer is lost.",
}
_TAKEN: Final = {409: "The name is taken."}


def documented(
    reply: type[BaseModel] | None,
    *,
    body: type[Body] | None = None,
    paid: bool = False,
    named: bool = False,
    status: int = 200,
) -> dict[str, Any]:
    """A route's part of the document."""
    told = _ANY | (_BODY if body is not None else {}) | (_PAID if paid else {}) | (_TAKEN if named else {})
    responses: dict[int | str, dict[str, object]] = {
        code: {"model": ErrorReply, "description": text} for code, text in sorted(told.items())
    }
    found: dict[str, Any] = {"responses": responses, "status_code": status, "response_model": reply}
    if body is not None:
        schema = _whole(body.model_json_schema())
        content = {"application/json": {"schema": schema}}
        found["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return found


def _whole(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with the parts it refers to written where they stand: the document has no place for a route's own."""
    parts = schema.pop("$defs", {})

    def written(tree: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(tree, dict):
            if "$ref" in tree:
                return written(parts[tree["$ref"].rpartition("/")[2]])
            return {name: written(value) for name, value in tree.items()}
        return [written(value) for value in tree] if isinstance(tree, list) else tree

    return dict(written(schema))
