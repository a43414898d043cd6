"""The application asked from a test, without a network: one event loop, one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx

from sulq.service.web.app import create_app
from sulq.service.web.responses import RequestGuard
from tests.service.office import Office


class Door:
    """HTTP into an application over an office."""

    def __init__(
        self, office: Office, *, app: RequestGuard | None = None, client: str = "127.0.0.1", beside: Door | None = None
    ) -> None:
        self.office = office
        self.app = app or create_app(office.call, office.service, console=False, jobs=office.near.client)
        self._runner = asyncio.Runner() if beside is None else beside._runner
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(client, 1))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def request(
        self,
        method: str,
        path: str,
        *,
        role: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: object,
    ) -> httpx.Response:
        token = {} if role is None else {"Authorization": f"Bearer {self.office.tokens[role]}"}
        asked = self._http.request(method, path, headers={**token, **(headers or {})}, **more)
        return self._runner.run(asked)

    def get(self, path: str, role: str | None = None, **more: object) -> httpx.Response:
        return self.request("GET", path, role=role, **more)

    def post(self, path: str, body: object, role: str | None = None, **more: object) -> httpx.Response:
        return self.request("POST", path, role=role, json=body, **more)

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.close()
        self.office.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
