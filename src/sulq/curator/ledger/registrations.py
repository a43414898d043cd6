"""A ledger that notes what its owner says: the data it protects, rows of a person, budgets and shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from fractions import Fraction

from sulq.curator.ledger import history, notes
from sulq.curator.ledger.anchor import AnchoredLedger
from sulq.curator.ledger.history import pending
from sulq.curator.ledger.notes import Registration
from sulq.curator.ledger.shares import Share, check_analyst
from sulq.curator.ledger.sources import Source, covered
from sulq.errors import SetupError
from sulq.kernel.ledger.entries import Draft, State
from sulq.language.estimator import Estimator
from sulq.language.privacy import Budget, EpsilonDelta
from sulq.language.rows_choice import RowsChoice


class RegisteringLedger(AnchoredLedger):
    """Writes what an owner registers; who opens and debits it is `Ledger`."""

    _version: int

    @property
    def choice(self) -> RowsChoice | None:
        """How many rows of a person are kept, where that was chosen from a paid release, and the release."""
        return self._history.choice

    @property
    def histogram_share(self) -> Fraction | None:
        """Of the budget, what a histogram of rows per person costs that is yet to be bought; None: none is."""
        return None if self._history.choice is not None else self._founding.histogram_share

    @property
    def told_unit(self) -> tuple[object, ...]:
        """The unit as its owner says it: without a number of rows that was chosen, and an old ledger's fold."""
        unit, auto = self.unit, self._founding.histogram_share is not None
        fold = None if self._founding.implied else unit.fold
        return unit.column, "auto" if auto else unit.rows, unit.neighbors, fold

    def looked(self, names: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Of these tables, each with what of it was declared after its owner looked at the rows."""
        known = self._history.registered
        return tuple((name, item) for name, told in known.items() if name in names for item in told.looked)

    def register(
        self,
        name: str,
        *,
        declarations: str,
        size: int | None = None,
        source: str = "",
        public: bool = False,
        estimators: tuple[Estimator, ...] = (),
        looked: tuple[str, ...] = (),
        anew: bool = False,
    ) -> int:
        """Note what data stands under a name, if that is new or said to be; returns the public version.

        What was declared after looking at the rows stays so, whatever is registered later (SR28). The spend stays with
        the person space, whatever its data is called and however often it is registered (T56).
        """
        data = Registration(name, declarations, size, source, public, estimators, looked=looked)

        def propose(draft: Draft) -> int:
            later = pending(draft)
            known = later.registered.get(name)
            told = data
            if known is not None:
                both = tuple(sorted({*known.looked, *looked}))
                told = replace(data, choice=known.choice, looked=both, erased=known.erased)
            if anew or known != told:
                draft.note(notes.registered(told, time=self._now()))
                later.registered[name] = told
                later.version += 1
            return later.version

        self._version = self._writer.take(propose)
        return self._version

    @property
    def erased(self) -> tuple[str, ...]:
        """The digests of all persons whose rows are left out of every table."""
        return tuple(sorted({each for known in self._history.registered.values() for each in known.erased}))

    def erase(self, digests: Collection[str]) -> None:
        """Note that persons' rows are left out from here on; the version moves on, so no stored answer is given again.

        Nothing that was spent comes back. The same is noted of an id that no row names, so that entries do not tell.

        Raises:
            SetupError: `bad-declaration`: nothing is registered whose rows could be left out.
        """

        def propose(draft: Draft) -> int:
            later = pending(draft)
            private = {name: known for name, known in later.registered.items() if not known.public}
            if not private:
                raise SetupError("bad-declaration", "No private table is registered in this ledger.")
            for name, known in private.items():
                told = replace(known, erased=tuple(sorted({*known.erased, *digests})))
                if told != known:
                    draft.note(notes.registered(told, time=self._now()))
                    later.registered[name] = told
                    later.version += 1
            return later.version

        self._version = self._writer.take(propose)

    def choose_rows(self, choice: RowsChoice) -> None:
        """Fix how many rows of a person are kept, from a paid release; once, whoever comes first.

        Privacy: the number is at most the first entry's, by which what was asked so far is priced (SR28).
        """

        def propose(draft: Draft) -> int:
            later = pending(draft)
            if history.of(draft.state).choice is None and not any(known.choice for known in later.registered.values()):
                told = replace(later.registered[choice.table], choice=choice)
                draft.note(notes.registered(told, time=self._now()))
                later.registered[choice.table] = told
                later.version += 1
            return later.version

        self._version = self._writer.take(propose)

    def cover(self, sources: Iterable[Source], *, new_people: bool = False) -> None:
        """Note the private sources whose people this ledger protects; each once, and again when it is another file.

        Privacy: what an entry keeps of size, time and bytes is a MAC under the ledger's own key (SR25).

        Args:
            sources: What is opened under this ledger.
            new_people: The owner's word that no other ledger protects these people, kept for any auditor to see.
        """

        def propose(draft: Draft) -> None:
            for source in new:
                if not _noted(source, draft.state, self._source_key):
                    draft.note(covered(source, self._source_key, new_people=new_people, time=self._now()))

        with self._writer.looking() as (state, _):
            new = [source for source in sources if not _noted(source, state, self._source_key)]
        new = [source.read() for source in new]  # outside any transaction: a file may be slow to read
        if new:
            self._writer.take(propose)

    def raise_to(self, budget: Budget) -> None:
        """Raise the budget by an entry of its own; the published total is the sum of all time.

        Raises:
            SetupError: `budget-mismatch` if it is of another kind, or lower in any part.
        """

        def propose(draft: Draft) -> None:
            own = draft.filter
            notes.refuse_lowered(own.budget, budget)
            if budget != own.budget:
                split = notes.widened(own.split, budget) if own.split and isinstance(budget, EpsilonDelta) else None
                draft.raise_to(notes.raised(budget, split, time=self._now()))

        self._writer.take(propose)

    def share(self, analyst: str, share: Share, *, unless_set: bool = False) -> Share:
        """Set what one analyst may spend at most and what is kept for it, as parts of the budget (T54, T55).

        It is an entry, if it is new; a later one replaces it. Without one an analyst may spend all that is left, and
        nothing is kept for it. With `unless_set` one that stands already is left as it is. Returns the one that holds.

        Raises:
            SetupError: `bad-share`: more would be kept for all than there is, or is left.
        """
        check_analyst(analyst)

        def propose(draft: Draft) -> Share:
            later = pending(draft)
            known = later.accounts.shares.get(analyst)
            if known is not None and (unless_set or known == share):
                return known
            later.accounts = later.accounts.given(draft.filter, analyst, share)
            draft.note(notes.shared(analyst, share, time=self._now()))
            return share

        return self._writer.take(propose)


def _noted(source: Source, state: State, key: bytes) -> bool:
    return any(cover.knows(source, key) for cover in history.of(state).covers if cover.kind != "name")
