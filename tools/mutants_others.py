"""Real privacy bugs of other systems, each as a change of one line of ours and the tests that must fail for it.

The list is that of the threat model (THREATS 1.12): what was wrong there, retold in
the line of our code that holds the same thing. `line` must stand exactly once in its
file; a line that does not is an error of this list, never a pass.
"""

from __future__ import annotations

from typing import Final

from tools.mutant import Mutant

REPLAY: Final = "tests/privacy/test_replay.py"
GROUPS: Final = "tests/privacy/test_groups.py"
PLAN: Final = "tests/compile/plan"
READ: Final = "tests/sources/test_cell_reading.py::test_every_cell_is_read_alike_T6_T26"
CODES: Final = "tests/sources/test_cell_reading.py::test_a_number_is_clamped_and_a_category_has_its_declared_place_T6"
ENGINES: Final = "tests/conformance/test_engines.py::test_every_engine_gives_the_integers_of_the_oracle_T4_T6_T11"


OTHERS: Final = (
    Mutant(
        "SmartNoise #201",
        "the clamp sits on the column and not on what is summed",
        "compile/statements/emitter.py",
        "        return clamped(units, float(low), float(high))",
        "        return units",
        ("tests/compile/statements/test_aggregate.py::test_the_clamp_sits_under_the_sum_T11",),
    ),
    Mutant(
        "SmartNoise #317",
        "without declared bounds the sensitivity is nothing, and so is the noise",
        "language/rowfn/vectors.py",
        '        raise QuestionError("unbounded", f"{describe(fn)} has no bounds.")',
        "        return Fraction(0), Fraction(0), kind",
        (
            f"{PLAN}/test_draft_bound.py::test_what_cannot_be_summed_is_refused_T12",
            f"{PLAN}/test_calibration.py::test_an_expression_without_bounds_is_refused_T12",
        ),
    ),
    Mutant(
        "SmartNoise #204",
        "the threshold is that of Laplace noise of the same price, and the noise is Gaussian, of five times the scale",
        "compile/plan/calibration.py",
        "    return first(lambda level: PassedGaussianLaw(scale, level).alone() <= chance, low, high)",
        "    return first(lambda level: PassedLaplaceLaw(scale / 5, level).alone() <= chance, low, high)",
        (
            "tests/kernel/mechanisms/test_table_open_keys.py::test_the_exact_chance_that_a_person_alone_shows_is_within_delta_T25",
        ),
    ),
    Mutant(
        "SmartNoise #622",
        "values are clipped, and then the unclipped ones are used",
        "sources/cell_reading.py",
        '    return f"CASE WHEN {item} >= {low} AND {item} <= {high} THEN {units} {beyond} END"',
        "    return units",
        (CODES,),
    ),
    Mutant(
        "SmartNoise #621",
        "several answers are accounted for as one",
        "kernel/ledger/filter.py",
        "        epsilon, _, *others = map(operator.add, self, other)",
        "        epsilon, _, *others = map(max, self, other)",
        ("tests/kernel/ledger/test_filter.py::test_histories_cost_what_the_closed_forms_say_T53",),
    ),
    Mutant(
        "SmartNoise #580",
        "what is not finite finds its way into a bin",
        "language/rowfn/writer.py",
        '        return joined("CASE WHEN isfinite({0}) THEN {0} END", self.named(item))',
        '        return joined("{0}", self.named(item))',
        (ENGINES,),
    ),
    Mutant(
        "SmartNoise 0.2.12",
        "other counts borrow the number of rows",
        "compile/statements/aggregate.py",
        '    n = query.aggregate(f"count({piece.sql})", emitter.rows.most)',
        '    n = query.aggregate("count(*)", emitter.rows.most)',
        (ENGINES,),
    ),
    Mutant(
        "diffprivlib #105",
        "the lower bound is taken twice, so that nothing can move",
        "compile/plan/extent.py",
        "    wide = [b - a for a, b in zip(low, high, strict=True)]",
        "    wide = [b - a for a, b in zip(low, low, strict=True)]",
        ("tests/compile/plan/test_extent.py::test_extents_are_exact_for_boxes_terms_and_tables_SR1",),
    ),
    Mutant(
        "Google #84",
        "rows are limited for each value instead of for each person",
        "kernel/keep.py",
        '    query += f" QUALIFY row_number() OVER (PARTITION BY {whose} ORDER BY {order}) <= {rows}"',
        '    query += f" QUALIFY row_number() OVER (PARTITION BY {whose}, c0 ORDER BY {order}) <= {rows}"',
        ("tests/kernel/test_keep.py::test_nobody_else_has_other_rows_when_a_person_leaves_SR2",),
    ),
    Mutant(
        "Google #101",
        "the threshold is rounded down to a whole number, and not up",
        "compile/plan/calibration.py",
        "    return first(lambda level: PassedGaussianLaw(scale, level).alone() <= chance, low, high)",
        "    return first(lambda level: PassedGaussianLaw(scale, level + 1).alone() <= chance, low, high)",
        (
            "tests/kernel/mechanisms/test_table_open_keys.py::test_the_exact_chance_that_a_person_alone_shows_is_within_delta_T25",
        ),
    ),
    Mutant(
        "Google 05fac28",
        "a sum at the end of 64 bits wraps round",
        "kernel/run.py",
        "    return np.clip(exact[:, columns], -room, room) << bits",
        "    return exact[:, columns] << bits",
        ("tests/curator/test_run.py::test_exact_sums_are_saturated_before_they_meet_noise_T5",),
    ),
    Mutant(
        "Google #405",
        "NaN passes the clamp",
        "sources/cell_reading.py",
        "    beyond = f\"WHEN {item} < {low} THEN {lowest} WHEN {item} <= CAST('inf' AS DOUBLE) THEN {highest}\"",
        '    beyond = f"WHEN {item} < {low} THEN {lowest} WHEN {item} > {high} THEN {highest}"',
        (READ,),
    ),
    Mutant(
        "OpenDP #2344",
        "one draw of noise is shared by all cells",
        "kernel/mechanisms/table.py",
        "            return released(exact, lambda values: values + bulk.laplace(values.size, law.scale))",
        "            return released(exact, lambda values: values + bulk.laplace(1, law.scale))",
        (
            "tests/kernel/mechanisms/test_bulk_laplace.py::test_empty_groups_do_not_share_their_noise_T9",
            "tests/privacy/test_numbers.py::test_cells_without_rows_have_noise_of_their_own_T9",
        ),
    ),
    Mutant(
        "OpenDP #2911",
        "permute-and-flip is charged as the exponential mechanism, a quarter of its price",
        "kernel/laws.py",
        "        return sensitivity / (self.weight * self.scale**2) if self.weight "
        "else (sensitivity / self.scale) ** 2 / 2",
        "        return sensitivity / (self.weight * self.scale**2) if self.weight "
        "else (sensitivity / self.scale) ** 2 / 8",
        (
            "tests/kernel/mechanisms/test_bulk_choose.py::test_permute_and_flip_is_not_priced_as_an_exponential_choice_SR4_T20",
        ),
    ),
    Mutant(
        "OpenDP #2922",
        "a group at the threshold is shown, which its delta does not cover",
        "kernel/mechanisms/table.py",
        "    return np.where(people + noise > law.threshold, people + noise, 0)",
        "    return np.where(people + noise >= law.threshold, people + noise, 0)",
        (
            "tests/kernel/mechanisms/test_table_open_keys.py::test_a_key_of_one_person_shows_at_most_at_its_delta_T24",
            "tests/kernel/mechanisms/test_table_open_keys.py::test_a_groups_number_follows_the_law_given_that_it_passed_T7",
        ),
    ),
    Mutant(
        "OpenDP #2934",
        "forked processes share the state of a generator",
        "kernel/entropy.py",
        "    drawn = os.urandom(count)",
        '    drawn = __import__("numpy").random.bytes(count)',
        ("tests/privacy/test_randomness.py::test_children_of_one_process_draw_different_noise_T67",),
    ),
    Mutant(
        "OpenDP #2938",
        "a value that may be missing is taken to be there",
        "compile/plan/extent.py",
        "    nullable = kind.nullable if isinstance(kind, Grid) else as_number(kind, block.fn).nullable",
        "    nullable = False",
        ("tests/compile/plan/test_extent.py::test_missing_values_may_count_as_zero",),
    ),
    Mutant(
        "OpenDP #2944",
        "categories are numbered as they appear in the rows",
        "sources/cell_reading.py",
        '        return f"list_position($categories{place}, {found})"',
        '        return f"dense_rank() OVER (ORDER BY {found}) + 0 * len($categories{place})"',
        (CODES,),
    ),
    Mutant(
        "OpenDP #2945",
        "a person exchanged for another moves two cells and pays for one",
        "compile/plan/calibration.py",
        '    cells = 2 if way == "apart" else 1',
        "    cells = 1",
        (f"{PLAN}/test_calibration_sensitivity.py::test_a_histogram_is_1_or_2_by_the_relation_E46_S4_6",),
    ),
    Mutant(
        "OpenDP #2949",
        "rows are bounded before they are multiplied, and the old bound is charged",
        "compile/plan/calibration.py",
        "    rows = unit.rows if draft.shape is None else max(draft.shape.rows, 1)"
        "  # public rows get noise like any other",
        "    rows = unit.rows",
        (f"{PLAN}/test_calibration_contribution.py::test_rows_that_a_join_multiplies_are_charged_as_multiplied_T15",),
    ),
    Mutant(
        "OpenDP #2638",
        "the Gaussian sampler is biased",
        "kernel/mechanisms/bulk.py",
        "    centre = scale**2 / t",
        "    centre = scale**2 / (t + 1)",
        ("tests/kernel/mechanisms/test_bulk_gaussian.py::test_the_sampler_follows_its_law_T7",),
    ),
    Mutant(
        "OpenDP 0.4.0",
        "what the noise must be as wide as is truncated to a whole number",
        "compile/plan/calibration.py",
        "    return Fraction(root + 1, 2**shift)",
        "    return Fraction(root // 2**shift)",
        (f"{PLAN}/test_calibration_scale.py::test_a_root_is_just_above",),
    ),
    Mutant(
        "PySyft #6914",
        "less noise costs less",
        "kernel/laws.py",
        '        return None if self.norm == "l2" else sensitivity / self.scale',
        '        return None if self.norm == "l2" else sensitivity * self.scale',
        ("tests/cli/audit/test_laws.py::test_prices_cover_the_exact_losses_of_the_whole_table_T20",),
    ),
    Mutant(
        "Qrlew #297",
        "a person who is alone in several groups pays for one",
        "compile/plan/calibration.py",
        '    return draft.rows * (2 if draft.facts.unit.neighbors == "replace_one" else 1)',
        "    return 1",
        (
            f"{PLAN}/test_calibration_threshold.py::test_a_person_moves_up_to_k_groups_SR14",
            f"{GROUPS}::test_choices_and_groups_are_told_apart_by_noise_alone_T24",
        ),
    ),
    Mutant(
        "Opacus #571 and #819",
        "a person who comes or goes is priced as one exchanged for another: the number of rows leaks",
        "compile/plan/calibration.py",
        '        ways: tuple[str, ...] = ("single",)',
        '        ways: tuple[str, ...] = ("pair",)',
        (
            f"{PLAN}/test_calibration_contribution.py::test_the_ways_of_moving_SR1",
            f"{PLAN}/test_calibration_sensitivity.py::test_the_plan_covers_every_person_SR1",
        ),
    ),
    Mutant(
        "Lomas, the order",
        "rows are read first and paid for afterwards",
        "curator/curator.py",
        "        self._rows.ready()  # here too: a source that changed underneath stops the owner, whatever is stored",
        "        self._rows._all(plan.parts)",
        (f"{REPLAY}::test_named_asks_are_told_apart_by_noise_alone",),
    ),
    Mutant(
        "Lomas, the comparison",
        "a price is compared, NaN with what it may be at least, and is taken as that: smaller than whatever is left",
        "kernel/facts.py",
        "        value = Decimal(float.__repr__(value))  # a subclass (numpy.float64) may print itself otherwise",
        "        value = Decimal(float.__repr__(max(float(SMALLEST), value)))",
        ("tests/privacy/test_promise.py::test_a_nonsense_loss_is_refused_before_anything_happens_T51",),
    ),
    Mutant(
        "openmed #2457",
        "a price too small for the ledger's unit is rounded to nothing",
        "kernel/ledger/filter.py",
        "    return -(-amount.numerator * GRAIN // amount.denominator)",
        "    return amount.numerator * GRAIN // amount.denominator",
        ("tests/kernel/ledger/test_filter.py::test_sums_are_never_below_the_exact_ones_T52",),
    ),
)
