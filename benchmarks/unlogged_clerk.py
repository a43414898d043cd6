"""A clerk whose asks leave no entry in the access log: what the log costs an ask is seen beside it."""

from __future__ import annotations

from sulq.service.clerk import main
from sulq.service.clerk.access_log import AccessLog

if __name__ == "__main__":
    AccessLog.later = lambda *_, **__: None
    main.main()
