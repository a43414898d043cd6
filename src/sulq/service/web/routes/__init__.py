"""The routes of the HTTP API, one file a subject."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from sulq.service.web.routes import analysts, ask, datasets, health, jobs, ledger, me, metrics, sql

ROUTERS: Final[tuple[APIRouter, ...]] = tuple(
    module.router for module in (health, me, datasets, ask, sql, ledger, analysts, jobs, metrics)
)
