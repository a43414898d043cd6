"""`sulq audit`: checks of an installed copy against what it promises, each with a control that must fail.

May be imported: everything below `cli`; OpenDP by `opendp` alone. Must never be here: a check that needs real data.
"""

from __future__ import annotations

from typing import Annotated

import typer


def audit(
    deep: Annotated[bool, typer.Option("--deep", help="The long one: many more draws, pairs and attacks.")] = False,
    case: Annotated[int | None, typer.Option(min=0, help="Make up the same data as the audit that printed it.")] = None,
    opendp: Annotated[bool, typer.Option("--opendp", help="Compare samplers and prices with OpenDP's too.")] = False,
) -> None:
    """Check this copy of sulq: samplers, exact costs, record-replay, attacks, ledger; exits 1 if a check fails."""
    from sulq.cli.audit.checks import checked  # engines, samplers and the harness are loaded only now

    raise typer.Exit(0 if checked(deep=deep, case=case, opendp=opendp) else 1)
