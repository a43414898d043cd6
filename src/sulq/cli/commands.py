"""The commands by name; the module of a command is loaded when that command is looked up, so that each starts fast."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

COMMANDS: Final[Mapping[str, str]] = {
    "demo": "sulq.cli.demo:demo",
    "init": "sulq.cli.setup.init:init",
    "check": "sulq.cli.setup.check:check",
    "budget": "sulq.cli.owner:budget",
    "prepare": "sulq.cli.owner:prepare",
    "forget": "sulq.cli.setup.forget:forget",
    "query": "sulq.cli.query:query",
    "explain": "sulq.cli.query:explain",
    "plan": "sulq.cli.query:plan",
    "afford": "sulq.cli.query:afford",
    "heavy": "sulq.cli.query:heavy",
    "describe": "sulq.cli.describe:describe",
    "serve": "sulq.cli.serve:serve",
    "audit": "sulq.cli.audit:audit",
    "learn": "sulq.cli.learn:learn",
    "score": "sulq.cli.score:score",
    "release": "sulq.cli.release:release",
    "report": "sulq.cli.report:report",
    "ledger": "sulq.cli.ledger:ledger",
    "analyst": "sulq.cli.analyst:analyst",
    "access": "sulq.cli.access:access",
}
"""Each command's function, or its group of commands, in the order of the help."""


@functools.cache
def loaded(name: str) -> Any:  # noqa: ANN401 - the command line library's own classes
    """The command of a name of COMMANDS."""
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        return get_command(alone)
    group = get_command(found)
    group.name = name
    return group


class Loading(Mapping[str, Any]):
    """All commands; to name them loads none."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - likewise
        return loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """The group `sulq`."""

    def __init__(self, **told: Any) -> None:  # noqa: ANN401 - likewise
        super().__init__(**told)
        self.commands = Loading()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - likewise
        """The names, in the order of COMMANDS."""
        return list(COMMANDS)
