"""The calls about who may ask: the token store is the clerk's, and looked at for every call."""

from __future__ import annotations

from collections.abc import Collection

from sulq.errors import QuestionError
from sulq.service.clerk.access import MAX_TOKEN_DAYS, TOKEN_DAYS, Access, Principal, nearest
from sulq.service.clerk.request import Request
from sulq.service.ipc import Frame


def told(principal: Principal) -> Frame:
    """What may be known of a principal."""
    scope = None if principal.datasets is None else list(principal.datasets)
    return {
        "name": principal.name,
        "role": principal.role,
        "datasets": scope,
        "created": principal.created,
        "expires": principal.expires,
        "revoked": principal.revoked,
    }


def whoami(request: Request) -> Frame:
    """Whose token this is."""
    request.only()
    return told(request.who)


def principals(access: Access, request: Request) -> Frame:
    """Everybody who was ever let in; no token and no hash of one."""
    request.only()
    return {"principals": [told(principal) for principal in access.list()]}


def add_principal(access: Access, request: Request, datasets: Collection[str]) -> Frame:
    """Let somebody in; the token is in this reply and nowhere else."""
    request.only("name", "role", "datasets", "days")
    days, scope = request.whole("days", TOKEN_DAYS, MAX_TOKEN_DAYS), request.names("datasets")
    check_datasets(scope or (), datasets)
    return {"token": access.add(request.text("name"), request.text("role"), scope, days)}


def check_datasets(scope: Collection[str], known: Collection[str]) -> None:
    """Refuse a name that is no dataset: its token would open nothing, or one day something nobody meant."""
    for name in scope:
        if name not in known:
            raise QuestionError("bad-principal", f"There is no dataset {name[:80]!r}{nearest(name, known)}.")


def revoke(access: Access, request: Request) -> Frame:
    """End a token, from the next call on."""
    request.only("name")
    access.revoke(request.text("name"))
    return {}
