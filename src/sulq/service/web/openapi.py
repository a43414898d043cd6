"""The OpenAPI document, told by the routes themselves: their bodies, replies and every way they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, Field
from starlette.responses import Response

from sulq.service.web.requests import Body


class ErrorDetail(BaseModel):
    """What went wrong: a stable code, why, and what to do next."""

    kind: str = Field(description="QuestionError, BudgetExceeded, AccessDenied, SetupError or CuratorError.")
    code: str
    message: str
    remedy: str


class ErrorReply(BaseModel):
    """An error."""

    error: ErrorDetail


ANY: Final[Mapping[int, str]] = {
    400: "The request or the question is refused; nothing was spent.",
    401: "No token, or one that is not good.",
    403: "The role does not reach this.",
    404: "There is no such thing, or it is not yours to see.",
    429: "Too many calls; see Retry-After.",
    500: "The curator failed; a constant text.",
    503: "Not ready; try again.",
}
OF_A_BODY: Final = {
    408: "The body came too slowly.",
    413: "The body is too long.",
    415: "The body is not application/json.",
}
OF_A_DEBIT: Final[Mapping[int, str]] = {
    402: "The budget does not hold this; nothing was spent.",
    409: "The idempotency key belongs to another question, or its answer is lost.",
}
OF_A_JOB: Final[Mapping[int, str]] = {410: "The job is no longer here: the server was started again since."}
OF_A_NAME: Final[Mapping[int, str]] = {409: "The name is taken."}


def refusals(told: Mapping[int, str]) -> dict[int | str, Any]:
    """Statuses and what they mean, as FastAPI documents errors."""
    return {code: {"model": ErrorReply, "description": text} for code, text in sorted(told.items())}


@dataclass(frozen=True, slots=True)
class Documented:
    """A route's part of the document; schemas are made when the document is asked for, not at every start."""

    reply: type[BaseModel] | None = None
    body: type[Body] | None = None
    errors: Mapping[int, str] = field(default_factory=dict)  # beside those of any route
    status: int = 200
    responses: Mapping[int | str, Any] | None = None  # in place of what any route answers

    def options(self) -> dict[str, Any]:
        """As FastAPI takes it."""
        told = {**ANY, **(OF_A_BODY if self.body is not None else {}), **self.errors}
        found: dict[str, Any] = {
            "responses": refusals(told) if self.responses is None else self.responses,
            "status_code": self.status,
            "response_model": self.reply,
        }
        if self.reply is None:
            found["response_class"] = Response
        if self.body is not None:
            content = {"application/json": {"schema": _whole(self.body.model_json_schema())}}
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
