"""Traces of requests for a collector of the operator's (OpenTelemetry), where `traces` of [server] names one.

A span for each request, one for each of its calls of the clerk, and one for the time that workers took for it: routes
by their pattern, codes, names of datasets there are, times. Nothing of a body, an answer, a token or a path; what a
caller says of a trace of its own is not looked at. The clerk and workers reach no collector: the web tells for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sulq.errors import AccessDenied, CuratorError, SetupError, SulqError
from sulq.service.web.counts import METHODS, NONE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

MAX_SPANS: Final = 256  # of one request: a plan may call the clerk for each of its queries
MAX_EXPORT_SECONDS: Final = 2.0  # a collector that does not answer holds nobody up, nor a stop for long
NANOSECONDS: Final = 10**9
UNSEEN: Final = frozenset({"bad-request", "too-large"})  # said too of what the clerk never looked up


@dataclass(slots=True)
class ClerkSpan:
    """One call of the clerk: when, about what, how it ended, and how long workers took for it."""

    call: str
    begun: int
    dataset: str | None = None
    ended: int = 0
    code: str = "ok"
    worked: float = 0.0


@dataclass(slots=True)
class RequestSpan:
    """One request, while it is answered."""

    begun: int = field(default_factory=time.time_ns)
    calls: list[ClerkSpan] = field(default_factory=list)


_under_way: ContextVar[RequestSpan | None] = ContextVar("request_span", default=None)


@contextmanager
def clerk_call(call: object, dataset: object) -> Iterator[ClerkSpan | None]:
    """Note a call of the clerk, where its request is traced: then its frame asks for times.

    A dataset is named once it is known that there is one: another word of a caller's stands in no trace. That is known
    of an answer, and of a refusal that the clerk gives only to whom it has let in; a clerk that is away says nothing.
    """
    request = _under_way.get()
    if request is None or len(request.calls) >= MAX_SPANS:
        yield None
        return
    found = ClerkSpan(str(call), time.time_ns())
    request.calls.append(found)
    there = True
    try:
        yield found
    except SulqError as error:
        found.code = error.code
        there = error.code not in UNSEEN and not isinstance(error, (AccessDenied, CuratorError, SetupError))
        raise
    except BaseException:
        found.code, there = "failed", False
        raise
    finally:
        found.ended = time.time_ns()
        found.dataset = str(dataset) if there and dataset is not None else None


class Traces:
    """Hands spans to a provider of OpenTelemetry's SDK; without one, does nothing."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("sulq")

    @contextmanager
    def request(self) -> Iterator[RequestSpan | None]:
        """Trace what is done within."""
        if self._tracer is None:
            yield None
            return
        token = _under_way.set(RequestSpan())
        try:
            yield _under_way.get()
        finally:
            _under_way.reset(token)

    def tell(self, span: RequestSpan, *, method: str, route: str, status: int, code: str | None, known: str) -> None:
        """Hand over a request that has ended; `known` is its id, as the log has it."""
        if self._tracer is None:
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        method, route = method if route and method in METHODS else NONE, route or NONE
        told: dict[str, str | int] = {
            "http.request.method": method, "http.route": route, "http.response.status_code": status,
            "sulq.request": known, **({} if code is None else {"sulq.code": code}),
        }  # fmt: skip
        name = f"{method} {route}"
        whole = self._tracer.start_span(name, kind=SpanKind.SERVER, attributes=told, start_time=span.begun)
        if status >= 500:
            whole.set_status(Status(StatusCode.ERROR))
        for call in span.calls:
            more = {} if call.dataset is None else {"sulq.dataset": call.dataset}
            inside = self._tracer.start_span(
                f"clerk {call.call}",
                set_span_in_context(whole),
                kind=SpanKind.CLIENT,
                attributes={"sulq.call": call.call, "sulq.code": call.code, **more},
                start_time=call.begun,
            )
            if call.worked:
                within = set_span_in_context(inside)
                workers = self._tracer.start_span("workers", within, attributes=more, start_time=call.begun)
                workers.end(min(call.begun + int(call.worked * NANOSECONDS), call.ended))
            inside.end(call.ended or time.time_ns())
        whole.end()

    def close(self) -> None:
        """Hand over what is left."""
        if self._provider is not None:
            self._provider.shutdown()


def traces_to(endpoint: str | None) -> Traces:
    """Traces for a collector that takes OTLP over HTTP."""
    if endpoint is None:
        return Traces()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource({"service.name": "sulq"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=MAX_EXPORT_SECONDS)))
    return Traces(provider)
