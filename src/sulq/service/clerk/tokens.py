"""Tokens and ids of sessions: how they are drawn and what is kept of them. The web process knows this much of them."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from sulq.kernel.entropy import random_bytes

TOKEN_BYTES: Final = 32  # of a token; 16 would do
PREFIX: Final = "sulq_"  # so that those who scan texts for secrets can find one
SESSION_PREFIX: Final = "session_"  # a session's id is no token: the web takes it from the console alone
TOKEN_DAYS: Final = 90
MAX_TOKEN_DAYS: Final = 3660
OVERLAP_SECONDS: Final = 86400  # the old token's, after a rotation
MAX_OVERLAP_SECONDS: Final = 30 * 86400


def drawn(prefix: str) -> str:
    """A new token, or the id of a new session."""
    return prefix + base64.urlsafe_b64encode(random_bytes(TOKEN_BYTES)).rstrip(b"=").decode()


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
