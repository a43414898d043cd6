"""Mistakes in what plans and proposes: without the kernel each would release more than is paid for.

The kernel refuses them before the debit; were anything released beyond it, the test would break down, which is no kill.
"""

from __future__ import annotations

from typing import Final

from tools.mutant import Mutant

ASKED: Final = "tests/curator/test_certificates_asked.py::test_what_is_asked_is_certified_and_within_its_debit"
TWO: Final = (f"{ASKED}[two rows]",)
EXCHANGED: Final = (f"{ASKED}[three rows exchanged]",)
QUERIES: Final = (f"{ASKED}[queries]",)
SHAPE: Final = "language/shape.py"
SQL: Final = "compile/statements/derived_tables.py"

PROPOSERS: Final = (
    Mutant(
        "sulq proposers, UNION ALL",
        "a person's rows in the parts of a union are not added up",
        SHAPE,
        "    rows = _few(sum(item.rows for item in shapes))",
        "    rows = _few(max(item.rows for item in shapes))",
        TWO,
    ),
    Mutant(
        "sulq proposers, a person's groups",
        "a person is taken to have one group, whatever the keys",
        SHAPE,
        "    rows = source.rows if relation.keys else 1",
        "    rows = 1",
        TWO,
    ),
    Mutant(
        "sulq proposers, the fan-out",
        "public rows that agree with a person's row are taken to be one",
        SHAPE,
        "    fan = max(fan, 1) if kept else fan",
        "    fan = 1",
        TWO,
    ),
    Mutant(
        "sulq proposers, DISTINCT",
        "of different rows a person is taken to alter one",
        SHAPE,
        "            return replace(shape(relation.source, facts), owned=False, fixed=False)",
        "            return replace(shape(relation.source, facts), owned=False, fixed=False, rows=1)",
        TWO,
    ),
    Mutant(
        "sulq proposers, a join by the person",
        "the condition that both rows are one person's is not written",
        SQL,
        '        on += [f"l.{OWNER} = r.{OWNER}"] if join.person else []',
        '        on += ["TRUE"] if join.person else []',
        TWO,
    ),
    Mutant(
        "sulq proposers, a join key cast",
        "keys are compared as doubles, so that a unique one may agree with several",
        SQL,
        '        on = [f"l.{left.names[ours]} = r.{right.names[theirs]}" for ours, theirs in join.on]',
        '        on = [f"l.{left.names[a]} = CAST(r.{right.names[b]} AS DOUBLE)" for a, b in join.on]',
        TWO,
    ),
    Mutant(
        "sulq proposers, a part twice",
        "the first part of a union is written twice",
        SQL,
        '        return self._made(" UNION ALL ".join(selects), relation)',
        '        return self._made(" UNION ALL ".join([*selects, selects[0]]), relation)',
        TWO,
    ),
    Mutant(
        "sulq proposers, GROUP BY without the person",
        "a person's groups are everybody's",
        SQL,
        '        grouped = ", ".join([OWNER, *(f"k{i}" for i in range(len(keys)))])',
        '        grouped = ", ".join([*(f"k{i}" for i in range(len(keys))), "k0"])',
        TWO,
    ),
    Mutant(
        "sulq proposers, people",
        "rows are counted for people: a person alone shows a group",
        "compile/statements/proposer.py",
        '        people = query.aggregate(f"count(DISTINCT {OWNER})" if owned else "count(*)", self.rows.most)',
        '        people = query.aggregate("count(*)", self.rows.most)',
        TWO,
    ),
    Mutant(
        "sulq proposers, a table's weights",
        "a public table is doubled after it was planned with",
        "compile/statements/proposer.py",
        '            looked.append(Looked((i, place), mine, units.shape[1], units.astype("<i8").tobytes()))',
        '            looked.append(Looked((i, place), mine, units.shape[1], (2 * units).astype("<i8").tobytes()))',
        TWO,
    ),
    Mutant(
        "sulq proposers, a constant's weight",
        "a count is doubled after it was planned with",
        "compile/statements/aggregate.py",
        '        query.blocks.append((place, [{query.aggregate("count(*)", count): units}]))',
        '        query.blocks.append((place, [{query.aggregate("count(*)", count): 2 * units}]))',
        TWO,
    ),
    Mutant(
        "sulq proposers, a fold's weight",
        "a count beside a fold is doubled after it was planned with",
        "compile/statements/programs/compiler.py",
        '            return Sum("vectors", self.put(Stack((Unit(self.place(1), term, term),))), keys=keys)',
        '            return Sum("vectors", self.put(Stack((Unit(self.place(1), 2 * term, 2 * term),))), keys=keys)',
        TWO,
    ),
    Mutant(
        "sulq proposers, the ball",
        "vectors are shortened to twice the radius that was planned with",
        "compile/statements/programs/compiler.py",
        "            return self.put(Stack(units, missing, kind.l1, kind.ball, shorten=True))",
        "            return self.put(Stack(units, missing, kind.l1, kind.ball and 2 * kind.ball, shorten=True))",
        TWO,
    ),
    Mutant(
        "sulq proposers, products",
        "products of a vector in a ball are taken to be as long as the vector",
        "language/rowfn/vectors.py",
        "        ball, l1 = (None if norm is None else norm**2 for norm in (inner.ball, inner.l1))",
        "        ball, l1 = inner.ball, inner.l1",
        TWO,
    ),
    Mutant(
        "sulq proposers, squares",
        "terms of the second degree are taken to sum to what those of the first do",
        "language/rowfn/vectors.py",
        "        whole = (high - low) ** self.degree",
        "        whole = high - low",
        TWO,
    ),
    Mutant(
        "sulq proposers, a vector's length",
        "the square of a length is taken to be the length",
        "compile/plan/extent.py",
        "        min(box.single_l2_squared, ball * ball),",
        "        min(box.single_l2_squared, ball),",
        TWO,
    ),
    Mutant(
        "sulq proposers, groups of a person",
        "the people of one group are hidden, and not of all that a person is in",
        "compile/plan/calibration.py",
        '    moves = {"single": draft.rows, "pair": 0, "apart": 2 * draft.rows}',
        '    moves = {"single": 1, "pair": 0, "apart": 2}',
        TWO,
    ),
    Mutant(
        "sulq proposers, a threshold of exchanged rows",
        "rows that leave one sum and enter another are planned for as one of both",
        "compile/plan/calibration.py",
        '        "apart": (2 * found.single_l1, single, 2 * single),',
        '        "apart": (found.single_l1, single, single),',
        EXCHANGED,
    ),
    Mutant(
        "sulq proposers, exchanged rows of a choice",
        "rows that are exchanged within a choice are planned for as one that leaves",
        "compile/plan/calibration.py",
        '    ways = {"single": (found.single, 1), "pair": (found.pair, 1), "apart": (found.single, 2)}',
        '    ways = {"single": (found.single, 1), "pair": (found.single, 1), "apart": (found.single, 2)}',
        EXCHANGED,
    ),
    Mutant(
        "sulq proposers, a finer grid",
        "the noise of a query is that of the coarser grid",
        "compile/plan/calibration.py",
        "            law = GaussianLaw(scale_of(move * 2**bits * noise.scale))",
        "            law = GaussianLaw(scale_of(move * noise.scale))",
        QUERIES,
    ),
    Mutant(
        "sulq proposers, rows of a query",
        "the noise of a query is that of one row of a person",
        "compile/plan/calibration.py",
        "    coordinates = tuple(_coordinate(found, draft.ways) * draft.rows for found in extents)",
        "    coordinates = tuple(_coordinate(found, draft.ways) for found in extents)",
        QUERIES,
    ),
)
