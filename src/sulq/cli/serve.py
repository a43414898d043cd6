"""`sulq serve`: the curator as a service, until Ctrl-C."""

from __future__ import annotations

import signal
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from sulq.api.declarations import warn_of_shared_database
from sulq.cli.config import CONFIG, DatasetConfig, read
from sulq.cli.open import ledger_of
from sulq.cli.show import hand_over
from sulq.errors import SetupError

ANYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not listened on

if TYPE_CHECKING:
    from sulq.service.settings import DatasetSettings, Service


def serve(
    config: Annotated[Path | None, typer.Option("--config", help="The sulq.toml to read; default: here.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port to listen on; 0: any that is free.")] = None,
    insecure_public: Annotated[
        bool, typer.Option("--insecure-public", help="Listen on a public address without TLS all the same.")
    ] = False,
) -> None:
    """Serve the datasets of a configuration over HTTP, with the console; the first start gives an owner's token.

    The token is shown on a terminal. Where stderr is none it is written to the file owner.token beside the access
    store, readable by its owner alone, and the path is shown.
    """
    from sulq.cli.access import host_act
    from sulq.service import logs
    from sulq.service.clerk.access import Access
    from sulq.service.sandbox import isolation
    from sulq.service.supervisor.main import Supervisor

    found = read(config or Path(CONFIG))
    server = settled(found.server, host, port, insecure_public=insecure_public)
    declared = [declaration(dataset) for dataset in found.datasets.values()]
    for dataset in found.datasets.values():
        warn_of_shared_database(ledger_of(dataset), dataset.files, dataset.anchor)
    service = replace(server, state=server.state.resolve())
    speak = Console(stderr=True, soft_wrap=True, highlight=False)
    with Access(service.access) as access:
        token = None
        if access.ownerless:
            with host_act(access, "first_owner"):
                token = access.first()
    if token is not None:
        speak.print("The first owner's token, shown this once (`sulq analyst add owner --role owner` replaces it):")
        hand_over({"owner": token}, service.access.with_name("owner.token"), speak)
    isolation.closed()
    logs.start("supervisor")
    supervisor = Supervisor(service, declared)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: supervisor.stop())
    supervisor.start()
    speak.print(escape(f"sulq serves {_url(server, supervisor.port)} (Ctrl-C stops it)"))
    supervisor.run()


def settled(server: Service, host: str | None, port: int | None, *, insecure_public: bool) -> Service:
    """The settings with what the command line says; a public address needs TLS, or the owner's word (T86)."""
    from sulq.client.http import loopback

    made = replace(
        server,
        host=server.host if host is None else host,
        port=server.port if port is None else port,
        insecure_public=server.insecure_public or insecure_public,
    )
    if not 0 <= made.port < 2**16:
        raise SetupError("bad-config", "A port lies between 0 and 65535.")
    if not loopback(made.host) and made.tls_cert is None and not made.insecure_public:
        raise SetupError("public-address", f"{made.host} can be reached by others, and there is no TLS.")
    if made.host in ANYWHERE and not made.hosts and made.public_url is None:
        raise SetupError(
            "bad-config",
            f"{made.host or 'An empty host'} is every address of this machine, and nothing says what it goes by.",
            "Name them in hosts of [server], or listen on one address.",
        )
    for file in (made.tls_cert, made.tls_key):
        if file is not None and not file.is_file():
            raise SetupError("missing-file", f"There is no file {file}.")
    if made.traces is not None and not _has_exporter():
        raise SetupError("missing-extra", "Traces need the extra 'otel'.", "pip install 'sulq[otel]'")
    return made


def _has_exporter() -> bool:
    """Whether the packages are there that send traces."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # not even the folders above it
        return False


def declaration(found: DatasetConfig) -> DatasetSettings:
    """A dataset as the server holds it."""
    from sulq.cli.open import ledger_for
    from sulq.service.clerk.registration import declare

    return declare(
        found.name,
        **found.words(),
        ledger=ledger_for(found),
        prepared=found.prepared,
        shares=found.shares,
        schedule=found.schedule,
    )


def _url(server: Service, port: int) -> str:
    name = f"[{server.host}]" if ":" in server.host else server.host
    return f"{'http' if server.tls_cert is None else 'https'}://{name}:{port}"
