"""What an owner is told when persons' rows are erased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MEANS: Final = """\
Their rows are gone from the prepared copies, and stay out when the data is prepared again, even while the source
still holds them: delete them there too, and from backups of your own. The ledger knows them by keyed digests alone.
Nothing is given back: the budget stays spent. Answers that were given stay as they are, and so do releases and models
made of them; what these can tell about any one person was bounded before they left, by what the budget says, and
asking on tells nothing more of those who are gone. No answer from before is given again.
A server that is running answers nothing more from the rows it opened: restart it."""


@dataclass(frozen=True, slots=True, repr=False)
class Erasure:
    """How many ids were named, and the places (from 1) of those that no row names; ids themselves are nowhere.

    `unread`: copies that could not be looked at or deleted.
    """

    asked: int
    unknown: tuple[int, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        found = self.asked - len(self.unknown)
        lines = [f"{found} of {self.asked} {'id' if self.asked == 1 else 'ids'} had rows, which are erased."]
        if self.unknown:
            places = ", ".join(map(str, self.unknown[:50])) + (" ..." if len(self.unknown) > 50 else "")
            lines.append(f"No row names these, by their places in what you gave: {places}. They stay out if they come.")
        if self.unread:
            places = ", ".join(self.unread[:20]) + (" ..." if len(self.unread) > 20 else "")
            lines.append(
                f"These could not be looked at and may be copies that hold their rows: {places}. Delete those."
            )
        return "\n".join([*lines, MEANS])

    __repr__ = __str__
