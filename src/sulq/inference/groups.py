"""Groups of rows by the labels of a key: which are compared, and the key as a row function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sulq.errors import QuestionError
from sulq.inference.design import labels_of
from sulq.inference.titles import labelled, title
from sulq.language.facts import Facts
from sulq.language.kinds import Truth
from sulq.language.rowfn import Each, RowFn, named

MAX_GROUPS: Final = 50


@dataclass(frozen=True, slots=True, eq=False)
class ComparedGroups:
    """A key and the labels that are compared, each with its cell in the answer."""

    key: RowFn
    labels: tuple[object, ...]
    cells: tuple[int, ...]
    name: str


def groups_of(facts: Facts, by: object, wanted: object, *, fewest: int = 2, most: int = MAX_GROUPS) -> ComparedGroups:
    """The groups of a key; of a condition those where it fails and where it holds."""
    fn = named(by)
    truth = isinstance(fn.kind(facts.schema), Truth)
    labels = (False, True) if truth else labels_of(facts, fn)
    if labels is None:
        raise QuestionError(
            "wrong-kind", f"{title(fn)} has no labels to compare.", "Group by a category or a condition, or use bins()."
        )
    listed = list(labels)
    if wanted is not None:
        chosen = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
        astray = next((label for label in chosen if label not in listed), None)
        if astray is not None or len(chosen) != len(set(map(repr, chosen))):
            raise QuestionError("bad-literal", f"{astray!r} is no label of {title(fn)}, or a label is there twice.")
        listed = chosen
    if not fewest <= len(listed) <= most:
        how = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise QuestionError(
            "bad-question", f"{title(fn)} has {len(listed)} groups; {how} are compared.", "Name them: groups=[...]."
        )
    cells = tuple(list(labels).index(label) for label in listed)
    return ComparedGroups(Each(fn) if truth else fn, tuple(listed), cells, title(fn))


def named_groups(groups: ComparedGroups) -> Sequence[str]:
    """What the groups are called in a table."""
    return [labelled(groups.key, label) for label in groups.labels]
