"""The application behind a synchronous transport: an event loop in a thread, no network."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

import httpx

from sulq.service.web.responses import RequestGuard


class _Transport(httpx.BaseTransport):
    def __init__(self, loop: asyncio.AbstractEventLoop, app: RequestGuard) -> None:
        self._loop = loop
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        return asyncio.run_coroutine_threadsafe(self._answer(request, content), self._loop).result(300)

    async def _answer(self, request: httpx.Request, content: bytes) -> httpx.Response:
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        reply = await self._inner.handle_async_request(asked)
        return httpx.Response(reply.status_code, headers=reply.headers, content=await reply.aread())


class Loop:
    """An application, answering in a thread of its own."""

    def __init__(self, app: RequestGuard) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.transport = _Transport(self._loop, app)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()
