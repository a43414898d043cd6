"""The web process: HTTP on a socket it was handed, and one line to the clerk; no data, no ledger, no access store.

Started by the supervisor as `python -m sulq.service.web.main`; on its standard input one
line of JSON: `listen`, the listening socket's descriptor; `clerk`, the path of the
clerk's socket; `service`, the settings; `jobs`, the path of the socket of the
jobs' process; where there are several web processes, `counts` is the descriptor of the file
of their counts, this process's number, and how many there are.
"""

from __future__ import annotations

import asyncio
import asyncio.constants
import socket
import sys
import tempfile
from typing import Final, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from sulq.errors import QuestionError
from sulq.service.ipc import SocketPool
from sulq.service.jobs.client import MAX_CALL_SECONDS, MAX_HEALTH_SECONDS, JobsClient
from sulq.service.sandbox import isolation
from sulq.service.settings import Service, Tree
from sulq.service.web.app import create_app
from sulq.service.web.clerk_pool import ClerkPool
from sulq.service.web.counts import SharedCounts
from sulq.service.web.framing import MAX_HEAD_BYTES, TOO_LONG, RequestConnection
from sulq.service.web.requests import Call
from sulq.service.web.responses import RequestGuard, refused
from sulq.service.web.traces import traces_to

MAX_HEAD_SECONDS: Final = 10.0  # within which a request's head must have arrived
MAX_IDLE_SECONDS: Final = 30  # a quiet connection is kept open
MAX_CONNECTIONS: Final = 1024
MAX_CONNECTIONS_PER_ADDRESS: Final = 512  # of them
SWITCH_SECONDS: Final = 0.001  # for which a plan keeps the interpreter where asks wait for it: 5 ms by default
MAX_LINGER_SECONDS: Final = 2.0  # a refusal is given so long to be read before the connection closes
MAX_STOP_SECONDS: Final = 20  # requests under way may end after a stop
NOWHERE: Final = "/nonexistent"


class TimedHttp(H11Protocol):
    """HTTP/1.1 with a time limit for a request's head, which uvicorn does not set (T85)."""

    conn: RequestConnection
    _begun: float | None = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A connection that says nothing is closed, and so is one of an address that has too many: others need some."""
        self.conn = RequestConnection()
        super().connection_made(transport)
        if sum(1 for other in self.connections if _address(other) == _address(self)) > MAX_CONNECTIONS_PER_ADDRESS:
            transport.abort()
            return
        self._arm(MAX_HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """A head that comes in pieces has as long as one that comes whole."""
        if self._refused:
            return
        super().data_received(data)
        if self._refused or self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._begun = None
            return
        now = self.loop.time()
        self._begun = now if self._begun is None else self._begun
        self._arm(self._begun + MAX_HEAD_SECONDS - now)

    def on_response_complete(self) -> None:
        """The rest of a body whose response is out is not waited for either, however it drips."""
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(MAX_HEAD_SECONDS, self._unfinished, self.cycle)
        super().on_response_complete()
        if self.conn.in_head and not self.transport.is_closing():  # it came before the response to another was out
            self._begun = self.loop.time()
            self._arm(MAX_HEAD_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or none that all would read alike; nothing more is read of this connection.

        It is closed when the other side has had time to read why: closed at once, with bytes of its unread, the
        system would take the refusal back.
        """
        del msg  # uvicorn's own words
        self._refused = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            long = self.conn.refusal == TOO_LONG
            why = f"A request's head is longer than {MAX_HEAD_BYTES} bytes." if long else "This is no HTTP request."
            reply = refused(QuestionError("bad-request", why), status=self.conn.refusal)
            headers = [*reply.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=reply.status_code, headers=headers, reason=STATUS_PHRASES[reply.status_code]),
                h11.Data(data=bytes(reply.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event))
        if self.cycle is not None:  # whoever still waits for a body hears that none will come
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._unset_keepalive_if_required()
        self.loop.call_later(MAX_LINGER_SECONDS, self.transport.close)

    def _unfinished(self, cycle: object) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self.transport.close()

    def _arm(self, seconds: float) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(max(seconds, 0.0), self.timeout_keep_alive_handler)


def _address(connection: object) -> str | None:
    client: tuple[str, int] | None = getattr(connection, "client", None)
    return None if client is None else client[0]


def server(app: RequestGuard, service: Service) -> uvicorn.Server:
    """The HTTP server, set up to say nothing of itself."""
    # A connection counts once its handshake is done: it has as long for that as for a head, not a minute. Nothing
    # that uvicorn hands on to the event loop says so.
    setattr(asyncio.constants, "SSL_HANDSHAKE_TIMEOUT", MAX_HEAD_SECONDS)  # noqa: B010 - a Final of typeshed's
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=TimedHttp,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=MAX_IDLE_SECONDS,
            timeout_graceful_shutdown=MAX_STOP_SECONDS,
            limit_concurrency=MAX_CONNECTIONS,
            ssl_certfile=service.tls_cert,
            ssl_keyfile=service.tls_key,
        )
    )


def main() -> None:
    """Serve until told to stop; requests under way end first."""
    told = isolation.settings("web")
    sys.setswitchinterval(SWITCH_SECONDS)
    # No folder here is ours to write; a library that only asks where files would lie must not fail at that.
    tempfile.tempdir = tempfile.tempdir or NOWHERE
    service = Service.from_json(cast("Tree", told["service"]))
    listener = socket.socket(fileno=cast("int", told["listen"]))
    line = SocketPool(str(told["clerk"]))
    pool = ClerkPool(str(told["clerk"]))
    lines = [SocketPool(str(told["jobs"]), timeout=limit) for limit in (MAX_CALL_SECONDS, MAX_HEALTH_SECONDS)]
    jobs = JobsClient(*(cast("Call", line.call) for line in lines))
    app = create_app(cast("Call", line.call), service, post=pool.post, jobs=jobs, traces=traces_to(service.traces))
    if "counts" in told:
        app.app.state.shared = SharedCounts(*cast("list[int]", told["counts"]))
    server(app, service).run(sockets=[listener])
    pool.close()
    for each in (line, *lines):
        each.close()


if __name__ == "__main__":
    main()
