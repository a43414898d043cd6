"""What the web process adds to a request's scope, where nothing that was sent can put it."""

from __future__ import annotations

from typing import Final

REQUEST_ID: Final = "sulq.request_id"  # the request's id, drawn by RequestGuard
SESSION: Final = "sulq.session"  # of the console's own calls: the id of the visitor's session
