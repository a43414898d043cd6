"""Buys the histogram of rows per person, and fixes from it how many rows of a person are kept.

Privacy: the histogram is a question like any other: planned, certified, debited and kept before its bins are looked at.
It is asked over rows of which the public maximum is kept; a person is one row of what is counted, so in one bin. All
that follows is made of the released bins and public facts, and is written down with the entry of their debit. Whoever
opens a ledger that has bought bins and fixed no number takes the bins that are stored; where they were lost, new ones
are charged like any ask (SR24, SR28).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import cast

from sulq.answers import wire
from sulq.answers.answer import Answer
from sulq.answers.released import Released
from sulq.curator.curator import Curator, Flight
from sulq.curator.ledger.bins import counts_of, histogram
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SetupError, SetupWarning
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.language.rows_choice import NEAR_BETA, SURE_BETA, RowsChoice, ask_price, bin_ends, noise_scale


def price(budget: Epsilon | Rho | EpsilonDelta, share: Fraction) -> Epsilon | Rho:
    """What the histogram costs: of an EpsilonDelta budget a part of its epsilon, so that as much is shown as spent."""
    return (Epsilon(budget.exact) if isinstance(budget, EpsilonDelta) else budget).share(share)


def choose_rows(curator: Curator, ledger: Ledger, *, again: bool = True) -> None:
    """Buy the histogram, or take the stored one, and fix the number that follows from it.

    Args:
        curator: Of rows of which the maximum is kept.
        ledger: Where it is charged and the number is fixed.
        again: Whether to buy one anew that was charged and has no stored answer; else it is refused.

    Raises:
        SulqError: As of any ask: nothing is fixed.
    """
    facts = curator.facts  # in step with the file; where none is chosen after that, its unit is the first entry's
    share = ledger.histogram_share
    if share is None:
        return
    several = [table for table in facts.every if not table.public and facts.kept_of(table) is not None]
    budget = facts.budget
    if isinstance(budget, SubLinear) or len(several) != 1:
        raise SetupError("bad-declaration", "This ledger's number of rows cannot be chosen from these tables.")
    name = several[0].schema.table
    question, spend = histogram(name, facts.unit.rows), price(budget, share)
    asked = curator.plan(question, spend=spend)
    stored = curator.stored(asked, None)
    if ledger.choice is not None:  # by another process, meanwhile: nothing is to be bought
        return
    if stored:
        (released,), seq = cast("tuple[Released, ...]", wire.decode(stored[0].answer or "")), stored[0].seq
    else:
        if ledger.times(asked.name):
            why = "The histogram of rows per person was charged before and has no stored answer"
            if not again:
                raise SetupError("answer-lost", f"{why}.", "Run `sulq prepare` where the ledger is: it is bought anew.")
            warnings.warn(f"{why}: {spend} is spent anew.", SetupWarning, stacklevel=4)
        answer = cast("Answer", curator.buy(asked, Flight(), at_once=True))
        released, seq = answer.released, answer.receipt.seq
    ledger.flush()  # the entry that fixes the number comes after the answer that it follows from
    ledger.choose_rows(chosen(released, seq, name, facts))


def chosen(released: Released, entry: int, table: str, facts: Facts) -> RowsChoice:
    """The number of rows that follows from released bins, and from nothing else but public facts."""
    (deviation,), (near,), (sure,) = released.deviations(), released.radius(NEAR_BETA), released.radius(SURE_BETA)
    ask = ask_price(facts.budget)
    noise = (float(deviation), float(near), float(sure), noise_scale(ask))
    found = RowsChoice(table, entry, bin_ends(facts.unit.rows), counts_of(released), *noise, ask)
    return replace(found, rows=found.best())
