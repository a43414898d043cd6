"""Every error sulq raises, by who must act and what it cost.

    SulqError
    ├── QuestionError    the analyst's question; free
    ├── BudgetExceeded   the question would pass the budget; free
    ├── AccessDenied     the caller may not do this; free
    ├── SetupError       the owner's declarations, files or ledger; nothing spent
    └── CuratorError     the curator's own failure; the debit stands

Each carries a stable kebab-case `code`; `CODES` says what each one means and
what to do next. No message raised after a debit depends on a row: the engine's
own text goes to the operator's log, the analyst gets the code.

A `SetupWarning` is no error: what an owner should put right, where nothing is refused.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import traceback
from typing import Final

PACKAGE: Final = f"{pathlib.Path(__file__).parent}{os.sep}"


class SulqError(Exception):
    """A refusal or failure with a stable `code`, what happened, and what to do next."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        if code not in CODES:  # a typo in a code must not reach a user
            raise LookupError(f"unregistered error code {code!r}")
        self.code = code
        self.message = message
        self.remedy = remedy or CODES[code]
        super().__init__(code, message, self.remedy)

    def __str__(self) -> str:
        """What was asked, why not, what to do, and the code to look up."""
        return f"{self.message} {self.remedy} [{self.code}]"

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, what to do, and the caller's own line; no frame of this package."""
        every = traceback.extract_tb(self.__traceback__)
        frames = itertools.takewhile(lambda frame: not frame.filename.startswith(PACKAGE), every)
        own = [frame for frame in frames if frame.line]
        where = [f"  line {own[-1].lineno}: {own[-1].line}"] if own else []
        remedy = [] if self.remedy == self.message else [f"  What to do: {self.remedy}"]
        return [f"{type(self).__name__}: {self.message}", *remedy, *where, f"  code: {self.code}"]


class QuestionError(SulqError):
    """The question cannot be answered as it is put; nothing was spent."""


class BudgetExceeded(SulqError):
    """The question would take the person space past its budget; nothing was spent."""


class AccessDenied(SulqError):
    """This caller may not do this; nothing was spent."""


class SetupError(SulqError):
    """The owner's declarations, files or ledger need attention; nothing was spent."""


class CuratorError(SulqError):
    """The curator failed after the debit; the debit stands and no answer is given."""


class SetupWarning(UserWarning):
    """What an owner should put right; nothing is refused."""


FAMILIES: Final[tuple[type[SulqError], ...]] = (QuestionError, BudgetExceeded, AccessDenied, SetupError, CuratorError)


CODES: Final[dict[str, str]] = {
    # questions
    "unknown-column": "Ask about a declared column, or have the owner declare it.",
    "unknown-table": "Use the name the data was registered under (see db.facts.table).",
    "unknown-category": "Use one of the declared categories; an undeclared one cannot be named.",
    "unbounded": "Declare bounds for the column, or put clip(x, low, high) around the expression.",
    "wrong-kind": "Check the kinds: numbers add and compare, conditions filter, keys partition.",
    "bad-literal": "Give a finite number, text, date or truth value of the column's kind.",
    "bad-question": "Correct what the message names; the guide on asking has an example of each form.",
    "bad-parameter": "Correct the parameter; the learner's or release's page says what it takes.",
    "not-fitted": "Call fit first.",
    "bad-model": "Load what model.save, a job or `sulq learn --out` wrote, with a version of sulq that knows it.",
    "bad-release": "Load what release.save or `sulq release --out` wrote, with a version of sulq that knows it.",
    "bad-report": "Write the specification as docs/guide/release/report.md shows it.",
    "not-published": "Ask one of the published questions (transcript.questions), or the database itself.",
    "bad-reports": "Give reports as a Respondent of the same domain, epsilon and method made them.",
    "not-estimable": "Reports already collected answer sums of the reported columns alone; ask for a new round.",
    "bad-table": "Predict on an array or frame with the columns the model was learned from.",
    "too-few-rows": "Accept a wider tolerance, ask fewer queries, spend more, or learn from more rows.",
    "size-secret": "The owner may declare the size (size=...); else ask a noisy count, and compare with that.",
    "small-cluster": "Learn fewer clusters, spend more, or let small ones be kept, dropped or reseeded.",
    "too-large": "Ask for fewer cells, values or a smaller expression.",
    "too-much-work": "Ask for fewer or shorter patterns; the owner may declare shorter texts: Text(longest=...).",
    "needs-position": "Places need zero_out, or replace_one without a person column; else bucket a person column.",
    "spend-missing": "Name what to pay: spend=Epsilon(0.1), or the accuracy wished for: within=...",
    "spend-kind": "Epsilon budgets take Epsilon; Rho: Rho and Epsilon; EpsilonDelta: all three; SubLinear: none.",
    "bad-loss": "A loss is made of positive finite numbers: Epsilon(0.1), Rho(0.005), EpsilonDelta(1, 1e-6).",
    "not-normalisable": "Give the space ends, or a distance by which far points are far: l1 or linf.",
    "node-unit": "A graph's answers hide edges: name whose edge it is in the unit, never one of its ends.",
    "not-certified": "Ask by a name and of the columns that the owner declared (db.facts lists them), without where.",
    "not-a-noisy-sum": "A SubLinear budget answers sums over declared keys and nothing else.",
    "boolean-only": "The binomial calibration answers counts only; ask a condition, or use another calibration.",
    "too-costly": "Raise at_most=, or accept a wider answer.",
    "too-little-noise": "The noise would fall below one grid unit or above what the sampler holds; change the spend.",
    "not-available": "This part of sulq is not in this version.",
    "sql-syntax": "Write one SELECT statement in PostgreSQL's way.",
    "sql-unsupported": "Say it with what docs/reference/sql.md lists: aggregates, arithmetic, CASE, LIKE, joins.",
    "raw-rows": "Ask for aggregates: COUNT, SUM, AVG and their like; single rows are never shown.",
    "not-grouped": "Put the column into GROUP BY, or inside an aggregate.",
    "person-lost": "Keep the person: group or join by the person's column.",
    "join-fan-out": "Join a public table by its declared unique key.",
    "open-keys": "Keys that are not declared need delta: spend=EpsilonDelta(...), or declare the categories.",
    "key-reused": "An idempotency key belongs to one question; use a new key.",
    "timed-out": "Ask again: what was charged is answered free from what is stored; timeout= says how long to wait.",
    "cancelled": "Ask again where an answer is still wanted; what was charged stays charged.",
    "answer-lost": "The question was charged and its answer was not kept; ask again with a new key.",
    "wire-format": "Send the canonical JSON of this version of sulq.",
    # budget and access
    "budget-exceeded": "Ask for less, or have the owner raise the budget (an entry in the ledger).",
    "not-synthetic": "Only a database opened with synthetic=True may be asked without noise.",
    "private-value": "An exact value never leaves the curator; ask a question instead.",
    "forked": "Open the database again in the child process.",
    "closed": "Open the database again.",
    "unauthorized": "Send a token of this curator: Authorization: Bearer TOKEN; the owner gives them out.",
    "token-expired": "Ask the owner for a new token.",
    "forbidden": "Ask the owner; your role does not reach this.",
    "not-found": "Check the name; what you may not see is not found either.",
    "rate-limited": "Wait the seconds that Retry-After names, then try again; nothing was spent.",
    "body-too-large": "Send a smaller body; structured questions and registrations may take 16 MiB, all else 256 KiB.",
    "body-too-slow": "Send the body without pauses; nothing was spent.",
    "bad-request": "Send JSON as the OpenAPI document of the server says: /v1/openapi.json.",
    "bad-media": "Send the header Content-Type: application/json.",
    "bad-principal": "Correct the name, role, datasets or days.",
    "name-taken": "Use another name; the token of a name that is in use is rotated.",
    "name-revoked": "Use another name; only a name that was not revoked gets a new token, by rotating it.",
    "last-owner": "Let another owner in first; then this one may go.",
    "too-many-jobs": "Wait for a job of yours to end, or end one.",
    "job-overrun": "Ask for less in one job, or have the operator raise job_limit; what was asked stays paid.",
    "job-memory": "Ask for a smaller model or fewer rows, or have the operator raise job_memory; asked stays paid.",
    "job-lost": "Start it again; what was asked stays paid and in the ledger, and a query asked again is free.",
    "result-let-go": "Take a result away when its job is done; what was asked stays paid and in the ledger.",
    # set-up
    "bad-declaration": "Correct the declaration; public facts are never read off the data.",
    "bad-certificate": "Correct what is declared of the function: see docs/guide/declared.md on what it must say.",
    "bad-bounds": "Give the lower bound first, both finite, and far enough apart.",
    "missing-file": "Check the path.",
    "folder-in-use": "Name a new or empty folder, or one that holds an earlier release, which is replaced.",
    "unreadable-data": "Check that the file is whole and of the kind its name says.",
    "malformed-csv": "Export the file as RFC 4180 says: quotes around texts, a quote inside them written twice, UTF-8.",
    "reference-not-own": "Name columns in references= that lead to rows of the same person, or leave them out.",
    "key-not-unique": "Name a column of different values in keys=, or leave the key out.",
    "person-type": "Store ids as whole numbers, decimals or texts, and as the same of these in all tables.",
    "missing-column": "Declare only columns the data has; see the names the data offers.",
    "engine-not-available": "This engine is not in this version.",
    "missing-extra": "Install the extra it names.",
    "covered-source": "Name the ledger that covers this data: ledger=...; a new one only with new_people=True.",
    "several-ledgers": "Name the one that holds: ledger=...; move copies of it to another folder.",
    "source-changed": "Register the changed data again: connect(..., renew=True) or `sulq prepare --renew`.",
    "prepared-unusable": "Delete the prepared copy or run `sulq prepare`; it is built from the data alone.",
    "unfit-rows": "Delete the prepared copy and open the data again; if this comes back, report it as a bug of sulq.",
    "ledger-busy": "Another process holds the ledger; nothing was spent, try again.",
    "ledger-damaged": "Do not answer from it; restore the ledger from a good copy and run `sulq ledger verify`.",
    "ledger-rolled-back": "Restore the newest copy, or burn the gap: `sulq ledger reconcile LEDGER --anchor ANCHOR`.",
    "statements-logged": "Begin the ledger in a session that logs no values: log_parameter_max_length = 0.",
    "no-entropy": "Nothing was spent; the operator must check the machine's entropy source.",
    "bad-anchor": "Bring the ledger's anchor back; if it is lost: `sulq ledger reconcile LEDGER --anchor NEW --lost`.",
    "bad-share": "Give share and reserve as fractions of the budget: reserve <= share <= 1, all reserves within 1.",
    "bad-signature": "Do not rely on this receipt: ask the owner for the ledger's public key and your own receipt.",
    "not-in-ledger": "The receipt is not of this ledger's history: keep it, and ask the owner which ledger it is of.",
    "ledger-format": "Use a version of sulq that knows this ledger's format.",
    "unit-mismatch": "Open it with the unit the ledger was created with; a new unit needs a new person space.",
    "budget-mismatch": "Open it with the ledger's budget; raising it is an entry: `sulq budget DATASET --raise-to`.",
    "synthetic-mismatch": "Whether data is synthetic is fixed when its ledger is created.",
    "bad-config": "Correct the configuration file.",
    "access-failed": "Free the disk of `state` or see to its rights; until then nobody is let in, shared or ended.",
    "access-damaged": "Restore the access store from a good copy, or move it away and give out new tokens.",
    "public-address": "Give tls_cert and tls_key, or say that it is meant: --insecure-public.",
    "not-ready": "The dataset is being opened; nothing was spent, try again in a moment.",
    "unreachable": "Check the address and that `sulq serve` runs there; whether an ask was charged, the key tells.",
    "insecure-url": "Use https://; over http:// a token can be read on its way; insecure=True sends it all the same.",
    # the curator's own
    "uncertified": "Report this question: the kernel could not prove what it costs, so no row was read for it.",
    "engine-failed": "The debit stands; the operator's log has the cause.",
    "noise-failed": "The debit stands; the operator must check the machine's entropy source.",
    "ledger-failed": "The ledger cannot be read or written. Check the disk, then open it again; a server does so.",
    "bad-receipt": "The part that sees rows refuses a plan without its own unused receipt.",
}
