"""The share of persons with more rows than are kept, read off stored answers: it stands beside later answers."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import cast

from sulq.answers import wire
from sulq.answers.released import Released, heavy_share
from sulq.answers.reuse import name_of, strength
from sulq.curator.ledger.ledger import Ledger
from sulq.language.facts import Heavy
from sulq.language.question import Holistic
from sulq.language.relation import Table
from sulq.language.statistic import HeavyPersons


class HeavyShares:
    """Shares that were bought, decoded once each.

    Privacy: read off answers that were paid for and left the curator.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bought: dict[tuple[int, str, int], Heavy] = {}  # by version, question and how often it was asked

    def of(self, table: str, scopes: Iterable[str], *, fresh: bool) -> Heavy | None:
        """The share of a table that was bought in the first of these scopes; only with `fresh` is the file read."""
        for scope in dict.fromkeys(scopes):
            asked = _name_of_heavy(table, scope)
            known = (self._ledger.version, asked, self._ledger.times(asked))
            if known[2] and fresh and known not in self._bought:
                lines = self._ledger.kept(asked)
                best = max(lines, key=lambda line: (strength(line.event), -line.seq), default=None)
                if best is not None:
                    (released,) = cast("tuple[Released, ...]", wire.decode(best.answer or ""))
                    self._bought[known] = heavy_share(table, released)
            if known in self._bought:
                return self._bought[known]
        return None


@functools.lru_cache(maxsize=256)
def _name_of_heavy(table: str, scope: str) -> str:
    """What the question for a table's heavy persons is called in the ledger."""
    return name_of(Holistic(HeavyPersons(), over=Table(table)), scope)
