"""Errors as responses: a status for each code, a constant for whatever the curator failed at."""

from __future__ import annotations

import json

import pytest

from sulq.errors import CODES, FAMILIES, CuratorError, SetupError
from sulq.service.web.limits import RateLimited
from sulq.service.web.responses import ATTENTION, FAILED, OPENING, STATUS, UNWRITTEN, Json, refused, status_of


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_has_a_status_and_a_body(family: type, code: str) -> None:
    """Whatever family a code comes in; the curator's own are 5xx and say nothing, all others say their text or less."""
    error = family(code, "MESSAGE")
    reply = refused(error)
    told = json.loads(reply.body)["error"]
    assert (told["kind"], told["code"]) == (family.__name__, code)
    assert reply.status_code == status_of(error)
    assert 400 <= reply.status_code <= 503
    if family is CuratorError:
        assert reply.status_code >= 500
        assert told["message"] == FAILED
    elif family is SetupError and reply.status_code == 503:
        other = UNWRITTEN if code.startswith("access-") else ATTENTION
        assert told["message"] == (OPENING if code == "not-ready" else other)
    else:
        assert told["message"] == "MESSAGE"
    assert set(STATUS) <= set(CODES)


def test_an_owner_reads_what_is_wrong_with_a_declaration() -> None:
    """The same refusal is 400 with its text where the owner declares, and a constant where an analyst asks."""
    error = SetupError("bad-bounds", "low is above high.")
    assert refused(error, owner=True).status_code == 400
    assert b"low is above" in refused(error, owner=True).body
    assert b"low is above" not in refused(error).body


def test_what_may_be_tried_again_says_when() -> None:
    """429 and 503 carry Retry-After."""
    assert refused(RateLimited(7.2)).headers["retry-after"] == "8"
    assert "retry-after" in refused(SetupError("not-ready", "")).headers
    assert "retry-after" not in refused(SetupError("bad-bounds", ""), owner=True).headers


def test_json_holds_no_number_that_is_none() -> None:
    """NaN would be read differently by each reader."""
    with pytest.raises(ValueError, match="JSON"):
        Json({"value": float("nan")})
