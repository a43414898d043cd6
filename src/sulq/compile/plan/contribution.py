"""In which ways one person can move the sums, under the unit's relation (SR1)."""

from __future__ import annotations

from dataclasses import replace

from sulq.compile.plan.draft import PlanDraft


def contribution(draft: PlanDraft) -> PlanDraft:
    """Name the extreme moves of a person with up to k kept rows.

    `single`: k rows appear or vanish. `pair`: k rows change into k others of the
    same cell. `apart`: k rows leave one cell and k enter another, of those that are
    answered: within a choice a row moves between candidates as a `pair`. Between these
    lie all mixtures of fewer rows: a norm of the move is convex in how many rows
    go out and come in, so its maximum is at these corners. Exactly one row is
    always present only under replace_one where the row itself is the person and
    none can be dropped: a row whose person is NULL, or another's, is not kept.
    """
    unit = draft.facts.unit
    if unit.neighbors != "replace_one":
        ways: tuple[str, ...] = ("single",)
    else:
        present = unit.column is None and not draft.droppable
        ways = ("pair",) if present else ("single", "pair")
        if draft.answered != 1:
            ways = (*ways, "apart")
    rows = unit.rows if draft.shape is None else max(draft.shape.rows, 1)  # public rows get noise like any other
    return replace(draft, ways=ways, rows=rows)
