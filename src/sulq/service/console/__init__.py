"""The web console: pages for owners, analysts and auditors, made of the public HTTP API and nothing else.

It holds no data, no ledger and no key of its own: every page is what the
visitor's own token gets from /v1. Rendered on the server; scripts only make it
smoother.
"""

from __future__ import annotations

from sulq.service.console.app import mount_console

__all__ = ["mount_console"]
