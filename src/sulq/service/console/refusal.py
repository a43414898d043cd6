"""A refusal as the console shows it: what happened, and what to do next."""

from __future__ import annotations


class Refusal(Exception):
    """Not done, and why; `status` is HTTP's, `code` is looked up in the reference of errors."""

    def __init__(self, status: int, code: str, message: str, remedy: str) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.remedy = remedy
        super().__init__(code)

    @property
    def heading(self) -> str:
        """The refusal in a few kind words."""
        return _HEADINGS.get(self.code) or _BY_STATUS.get(self.status, "That did not work")

    @property
    def free(self) -> bool:
        """Whether it is certain that nothing was spent; a failure of the curator's own may stand in the ledger."""
        return self.status < 500 or self.code in ("not-ready", "rate-limited")


class SignedOut(Exception):
    """The API does not know the token, or no longer: the visitor must sign in."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.code)


_HEADINGS = {
    "budget-exceeded": "There is not enough budget left for this",
    "rate-limited": "A little slower, please",
    "not-ready": "The data is still being opened",
    "token-expired": "Your token has run out",
    "raw-rows": "Single rows are never shown",
    "unknown-column": "There is no such column",
    "unknown-table": "There is no such table",
    "sql-syntax": "This could not be read as SQL",
    "result-let-go": "This result is no longer here",
    "too-costly": "That accuracy costs more than you allow",
}
_BY_STATUS = {
    400: "This cannot be answered as it stands",
    401: "Please sign in",
    402: "There is not enough budget left for this",
    403: "Not allowed",
    404: "Not found",
    409: "This was sent before, with something else in it",
    413: "That was too much at once",
    422: "This cannot be answered as it stands",
    429: "A little slower, please",
    500: "The curator could not finish",
    503: "Not ready yet",
}
