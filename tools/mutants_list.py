"""Real privacy bugs of other systems, each as a change of one line of ours and the tests that must fail for it.

The list is that of the threat model (THREATS 1.12): what was wrong there, retold in
the line of our code that holds the same thing. `line` must stand exactly once in its
file; a line that does not is an error of this list, never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REPLAY: Final = "tests/privacy/test_replay.py"
GROUPS: Final = "tests/privacy/test_groups.py"
PLAN: Final = "tests/curator/plan"
LEDGER: Final = "tests/curator/ledger"
TEXTS: Final = "tests/terms/rowfn/test_texts.py"
READ: Final = "tests/curator/engines/test_read_sql.py::test_T6_T26_every_cell_is_read_alike"
ENGINES: Final = "tests/conformance/test_engines.py::test_T4_T6_T11_every_engine_gives_the_integers_of_the_oracle[0]"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: where it was, what it was, which line of ours becomes which, and what must notice."""

    bug: str
    what: str
    file: str
    line: str
    planted: str
    tests: tuple[str, ...]


MUTANTS: Final = (
    Mutant(
        "SmartNoise #201",
        "the clamp sits on the column and not on what is summed",
        "curator/engines/emit.py",
        "        return clamped(units, float(low), float(high))",
        "        return units",
        ("tests/curator/engines/test_aggregate.py::test_T11_the_clamp_sits_under_the_sum",),
    ),
    Mutant(
        "SmartNoise #317",
        "without declared bounds the sensitivity is nothing, and so is the noise",
        "terms/rowfn/vectors.py",
        '        raise QuestionError("unbounded", f"{describe(fn)} has no bounds.")',
        "        return Fraction(0), Fraction(0), kind",
        (
            f"{PLAN}/test_bound.py::test_T12_what_cannot_be_summed_is_refused",
            f"{PLAN}/test_calibrate.py::test_T12_an_expression_without_bounds_is_refused",
        ),
    ),
    Mutant(
        "SmartNoise #204",
        "the threshold is that of Laplace noise of the same price, and the noise is Gaussian, of five times the scale",
        "curator/plan/threshold.py",
        "    return GaussianLaw(scale).accuracy(min(beta, 0.5)) + 1",
        '    return __import__("sulq.terms.law", fromlist=["law"]).LaplaceLaw(scale / 5).accuracy(min(beta, 0.5)) + 1',
        ("tests/mechanisms/test_open_keys.py::test_T25_the_exact_chance_that_a_person_alone_shows_is_within_delta",),
    ),
    Mutant(
        "SmartNoise #622",
        "values are clipped, and then the unclipped ones are used",
        "curator/engines/read_numpy.py",
        "        found = np.where(inside, units, np.where(numbers < low, float(column.low), float(column.high)))",
        "        found = np.fmax(np.fmin(units, 2.0**53), -(2.0**53))",
        (READ,),
    ),
    Mutant(
        "SmartNoise #621",
        "several answers are accounted for as one",
        "curator/ledger/filter.py",
        "            self.epsilon + other.epsilon,",
        "            max(self.epsilon, other.epsilon),",
        (
            "tests/curator/ledger/test_filter.py::test_T52_sums_are_never_below_the_exact_ones",
            "tests/curator/ledger/test_filter.py::test_T53_histories_cost_what_the_closed_forms_say",
        ),
    ),
    Mutant(
        "SmartNoise #580",
        "what is not finite finds its way into a bin",
        "curator/engines/emit.py",
        '        return joined("CASE WHEN isfinite({0}) THEN {0} END", named)',
        '        return joined("{0}", named)',
        (ENGINES,),
    ),
    Mutant(
        "SmartNoise 0.2.12",
        "other counts borrow the number of rows",
        "curator/engines/aggregate.py",
        '    n = query.aggregate(f"count({piece.sql})", rows_at_most(emitter))',
        '    n = query.aggregate("count(*)", rows_at_most(emitter))',
        (ENGINES,),
    ),
    Mutant(
        "diffprivlib #105",
        "the lower bound is taken twice, so that nothing can move",
        "curator/statistics/sums.py",
        "    wide = [b - a for a, b in zip(low, high, strict=True)]",
        "    wide = [b - a for a, b in zip(low, low, strict=True)]",
        ("tests/curator/statistics/test_sums.py::test_SR1_extents_are_exact_for_boxes_terms_and_tables",),
    ),
    Mutant(
        "Google #84",
        "rows are limited for each value instead of for each person",
        "curator/engines/kept.py",
        '        query += f" QUALIFY row_number() OVER (PARTITION BY {whose} ORDER BY {order}) <= {unit.rows}"',
        '        query += f" QUALIFY row_number() OVER (PARTITION BY {whose}, c0 ORDER BY {order}) <= {unit.rows}"',
        (
            f"{REPLAY}::test_T14_a_person_everywhere_moves_all_cells_by_no_more_than_the_kept_rows",
            "tests/curator/engines/test_kept.py::test_T16_spellings_of_one_person_share_one_allowance",
            ENGINES,
        ),
    ),
    Mutant(
        "Google #101",
        "the threshold is rounded down to a whole number, and not up",
        "curator/plan/threshold.py",
        "    return GaussianLaw(scale).accuracy(min(beta, 0.5)) + 1",
        "    return GaussianLaw(scale).accuracy(min(beta, 0.5))",
        ("tests/mechanisms/test_open_keys.py::test_T25_the_exact_chance_that_a_person_alone_shows_is_within_delta",),
    ),
    Mutant(
        "Google 05fac28",
        "a sum at the end of 64 bits wraps round",
        "curator/run.py",
        "    return lambda exact: np.clip(exact[:, start:stop], -room, room) << bits",
        "    return lambda exact: exact[:, start:stop] << bits",
        ("tests/curator/test_run.py::test_T5_exact_sums_are_saturated_before_they_meet_noise",),
    ),
    Mutant(
        "Google #405",
        "NaN passes the clamp",
        "curator/engines/read_numpy.py",
        "    absent = absent | np.isnan(numbers)",
        "    found = np.where(np.isnan(numbers), 2.0**62, found)",
        (READ,),
    ),
    Mutant(
        "OpenDP #2344",
        "one draw of noise is shared by all cells",
        "mechanisms/bulk.py",
        "        return few(values) if values.size < MANY else values + draw(values.size, scale)",
        "        return values + draw(1, scale)",
        (
            "tests/mechanisms/test_laplace.py::test_T9_empty_groups_do_not_share_their_noise",
            "tests/privacy/test_numbers.py::test_T9_cells_without_rows_have_noise_of_their_own",
        ),
    ),
    Mutant(
        "OpenDP #2911",
        "permute-and-flip is charged as the exponential mechanism, a quarter of its price",
        "mechanisms/choose.py",
        "        return self.epsilon(sensitivity) ** 2 / 2",
        "        return self.epsilon(sensitivity) ** 2 / 8",
        ("tests/mechanisms/test_choose.py::test_SR4_T20_permute_and_flip_is_not_priced_as_an_exponential_choice",),
    ),
    Mutant(
        "OpenDP #2922",
        "a group at the threshold is shown, which its delta does not cover",
        "mechanisms/open_keys.py",
        "            return np.where(noisy > self.law.threshold, noisy, 0)",
        "            return np.where(noisy >= self.law.threshold, noisy, 0)",
        (
            "tests/mechanisms/test_open_keys.py::test_T24_a_key_of_one_person_shows_at_most_at_its_delta",
            "tests/mechanisms/test_open_keys.py::test_T7_a_groups_number_follows_the_law_given_that_it_passed",
        ),
    ),
    Mutant(
        "OpenDP #2934",
        "forked processes share the state of a generator",
        "mechanisms/entropy.py",
        "    drawn = os.urandom(count)",
        '    drawn = __import__("numpy").random.bytes(count)',
        ("tests/privacy/test_randomness.py::test_T67_children_of_one_process_draw_different_noise",),
    ),
    Mutant(
        "OpenDP #2938",
        "a value that may be missing is taken to be there",
        "curator/statistics/sums.py",
        "    nullable = kind.nullable if isinstance(kind, Grid) else as_number(kind, block.fn).nullable",
        "    nullable = False",
        ("tests/curator/statistics/test_sums.py::test_missing_values_may_count_as_zero",),
    ),
    Mutant(
        "OpenDP #2944",
        "categories are numbered as they appear in the rows",
        "curator/engines/read_numpy.py",
        "    places: dict[object, int] = {value: place for place, value in enumerate(column.values)}",
        "    places: dict[object, int] = {value: i for i, value in enumerate(dict.fromkeys(values.tolist()))}",
        (READ, ENGINES),
    ),
    Mutant(
        "OpenDP #2945",
        "a person exchanged for another moves two cells and pays for one",
        "curator/plan/sensitivity.py",
        '    cells = 2 if way == "apart" else 1',
        "    cells = 1",
        (f"{PLAN}/test_sensitivity.py::test_E46_S4_6_a_histogram_is_1_or_2_by_the_relation",),
    ),
    Mutant(
        "OpenDP #2949",
        "rows are bounded before they are multiplied, and the old bound is charged",
        "curator/plan/contribution.py",
        "    rows = unit.rows if draft.shape is None else max(draft.shape.rows, 1)"
        "  # public rows get noise like any other",
        "    rows = unit.rows",
        (f"{PLAN}/test_contribution.py::test_T15_rows_that_a_join_multiplies_are_charged_as_multiplied",),
    ),
    Mutant(
        "OpenDP #2638",
        "the Gaussian sampler is biased",
        "mechanisms/_opendp.py",
        "        return np.array(chosen(values.tolist()), dtype=np.int64)",
        "        return values + np.trunc(0.95 * (np.array(chosen(values.tolist())) - values)).astype(np.int64)",
        ("tests/mechanisms/test_gaussian.py::test_T7_the_sampler_follows_its_law",),
    ),
    Mutant(
        "OpenDP 0.4.0",
        "what the noise must be as wide as is truncated to a whole number",
        "curator/plan/scale.py",
        "    return Fraction(root + 1, 2**shift)",
        "    return Fraction(root // 2**shift)",
        (f"{PLAN}/test_scale.py::test_a_root_is_just_above",),
    ),
    Mutant(
        "PySyft #6914",
        "less noise costs less",
        "mechanisms/laplace.py",
        "        return sensitivity / self.law.scale",
        "        return sensitivity * self.law.scale",
        ("tests/cli/test_audit_laws.py::test_T20_prices_cover_the_exact_losses_of_the_whole_table",),
    ),
    Mutant(
        "Qrlew #297",
        "a person who is alone in several groups pays for one",
        "curator/plan/threshold.py",
        '    return draft.rows * (2 if draft.facts.unit.neighbors == "replace_one" else 1)',
        "    return 1",
        (
            f"{PLAN}/test_threshold.py::test_SR14_a_person_moves_up_to_k_groups",
            f"{GROUPS}::test_RP_T24_choices_and_groups_are_told_apart_by_noise_alone",
        ),
    ),
    Mutant(
        "Opacus #571 and #819",
        "a person who comes or goes is priced as one exchanged for another: the number of rows leaks",
        "curator/plan/contribution.py",
        '        ways: tuple[str, ...] = ("single",)',
        '        ways: tuple[str, ...] = ("pair",)',
        (
            f"{PLAN}/test_contribution.py::test_SR1_the_ways_of_moving",
            f"{PLAN}/test_sensitivity.py::test_SR1_the_plan_covers_every_person",
        ),
    ),
    Mutant(
        "Lomas, the order",
        "rows are read first and paid for afterwards",
        "curator/curator.py",
        "        self._rows.ready()  # here too: a source that changed underneath stops the owner, whatever is stored",
        "        self._rows._all(plan.parts)",
        (f"{REPLAY}::test_RP_named_asks_are_told_apart_by_noise_alone",),
    ),
    Mutant(
        "Lomas, the comparison",
        "a price is compared, NaN with what it may be at least, and is taken as that: smaller than whatever is left",
        "terms/privacy.py",
        "        if not math.isfinite(value):",
        "        if math.isinf(value := max(float(SMALLEST), value)):",
        ("tests/privacy/test_promise.py::test_T51_a_nonsense_loss_is_refused_before_anything_happens",),
    ),
    Mutant(
        "openmed #2457",
        "a price too small for the ledger's unit is rounded to nothing",
        "curator/ledger/filter.py",
        "    return -(-amount.numerator * GRAIN // amount.denominator)",
        "    return amount.numerator * GRAIN // amount.denominator",
        ("tests/curator/ledger/test_filter.py::test_T52_sums_are_never_below_the_exact_ones",),
    ),
    # Files put back under live objects, logs, asks in flight.
    Mutant(
        "T105, the diary",
        "a live diary takes an older file and tells a third report of .5 on a budget of 1",
        "local/diary.py",
        "        if any(found.get(key) != held for key, held in self._told.items()):  # a diary only ever grows",
        "        if False:",
        ("tests/local/test_diary.py::test_T105_an_older_file_under_a_live_diary_is_refused",),
    ),
    Mutant(
        "T105, UNLOGGED",
        "a live process goes on with a ledger in PostgreSQL that was set UNLOGGED",
        "curator/ledger/postgres.py",
        "    WHERE ({STRUCTURE} WHERE pg_class.oid IN ({OURS})) = %(sound)s",
        "    WHERE %(sound)s <> ''",
        (f"{LEDGER}/test_postgres.py::test_T105_a_ledger_changed_under_a_live_process_takes_no_debit",),
    ),
    Mutant(
        "T105, the previous entry",
        "a live process goes on with a long ledger in PostgreSQL whose last entry was deleted",
        "curator/ledger/postgres.py",
        "    AND EXISTS (SELECT FROM {{0}}.entries WHERE seq = %(seq)s AND hash = %(hash)b)",
        "",
        (f"{LEDGER}/test_postgres.py::test_T105_a_deleted_entry_of_a_long_ledger_is_found_in_turn",),
    ),
    Mutant(
        "T105, the ledger's file",
        "a live process goes on with a file whose entries were deleted",
        "curator/ledger/sqlite.py",
        "        if not self._is_ours() or self._db.execute(WHOLE, self._window(seq)).fetchall() != [(1,)]:",
        "        if False:",
        (f"{LEDGER}/test_sqlite.py::test_T105_a_file_changed_under_a_live_process_takes_no_debit",),
    ),
    Mutant(
        "T105, logged statements",
        "a ledger is begun where the server's log has its keys",
        "curator/ledger/postgres.py",
        "    if logged:",
        "    if False:",
        (f"{LEDGER}/test_postgres.py::test_T105_no_ledger_is_begun_where_its_keys_would_be_logged",),
    ),
    Mutant(
        "T105, one database",
        "nobody is told that ledger and data are restored together",
        "connect.py",
        "    if anchor is None and any(same_database(str(ledger), str(source)) for source in near):",
        "    if False:",
        ("tests/test_connect_postgres.py::test_T105_a_ledger_in_the_database_of_its_data_is_warned_of",),
    ),
    Mutant(
        "T105, row-level security",
        "a view's SECURITY DEFINER function hides rows, and nobody hears of it",
        "curator/engines/postgres_source.py",
        '    hiding = db.execute(HIDING, [found[0][0]]).fetchone() if found[0][1] == "v" else None',
        "    hiding = None",
        ("tests/curator/engines/test_postgres_source.py::test_T105_a_view_that_may_hide_rows_is_refused",),
    ),
    Mutant(
        "T105, Spark",
        "a Python function that is random is taken for a column",
        "curator/engines/spark/frame.py",
        '    "PYTHON_UDF": "a Python function, which may be random",',
        "",
        ("tests/curator/engines/test_spark.py::test_T105_rows_that_may_be_others_when_read_again_are_refused",),
    ),
    Mutant(
        "T104, the token",
        "the first owner's token stands in the log",
        "cli/tokens.py",
        "    if speak.is_terminal and speak.file.isatty():  # a console may be told to behave like one",
        "    if True:",
        ("tests/cli/test_tokens.py::test_T104_a_stream_that_is_no_terminal_hears_the_path_alone",),
    ),
    Mutant(
        "T102, asks in flight",
        "identical asks at once are charged each",
        "curator/flights.py",
        "            other.done.wait()",
        "            return _first(stored(), lambda: buy(mine))",
        ("tests/curator/test_flights.py::test_T102_identical_asks_in_flight_are_one",),
    # What one person can make slow (T100)
    Mutant(
        "sulq, outcomes at the limit",
        "nothing bounds what one person's rows add to the time: at the limit the outcome tells that there is one",
        "curator/plan/__init__.py",
        "    check_work(questions, facts, limit)",
        "    pass",
        (f"{PLAN}/test_work.py::test_T100_what_one_person_could_make_too_slow_is_refused_from_public_facts",),
    ),
    Mutant(
        "sulq, rows of a join",
        "the work of one person is counted for one row, not for all that the person can have there",
        "curator/plan/work.py",
        "    return _Work(facts, lambda relation: shape(relation, facts).rows, LONGEST_CELL).of(questions) / 1e9",
        "    return _Work(facts, lambda _: 50, LONGEST_CELL).of(questions) / 1e9",
        (f"{PLAN}/test_work.py::test_T100_the_rows_of_a_person_are_those_of_the_relation",),
    ),
    Mutant(
        "sulq, the matcher",
        "a pattern with wildcards is tried at each place of a long text",
        "terms/rowfn/texts.py",
        "            if wild and (len(text) - place) * len(part) > FEW_STEPS:",
        "            if wild and len(text) < 0:",
        (f"{TEXTS}::test_T74_T100_a_pattern_that_begins_with_a_wildcard_is_decided_in_linear_time",),
    ),
    Mutant(
        "sulq, long texts",
        "the declared bound of a text is planned with and not kept to where cells are read",
        "curator/engines/read_sql.py",
        "        return cut(text(cell, item), column.longest)",
        "        return cut(text(cell, item), 10_000)",
        ("tests/privacy/test_narrow.py::test_T100_texts_are_cut_alike_on_every_engine",),
    # -- answers that mislead: kept rows, pre-checks, inference from subsets
    Mutant(
        "kept rows, the note",
        "an answer over a table of which some rows of a person are kept says nothing of it",
        "terms/bounding.py",
        '    return ("; ".join([note, *beside]),)',
        "    return ()",
        ("tests/terms/test_bounding.py::test_an_answer_over_a_bounded_table_says_so",),
    ),
    Mutant(
        "kept rows, the share",
        "an exchange is taken to move one count of persons, not both",
        "curator/statistics/heavy.py",
        "    return Figure(Fraction(1), 2, Move(1, 1, 1, 1), Move(2, 2, 1, 2))",
        "    return Figure(Fraction(1), 2, Move(1, 1, 1, 1), Move(1, 1, 1, 1))",
        ("tests/curator/statistics/test_heavy.py::test_SR5_one_person_moves_the_counts_no_farther_than_the_plan_says",),
    ),
    Mutant(
        "kept rows, whose share",
        "what one analyst bought stands beside everybody's answers",
        "curator/curator.py",
        "        for place in dict.fromkeys((self._shown, self._place)):",
        '        for place in (self._shown, self._place, self._placed(("analyst", "ann"))):',
        ("tests/curator/statistics/test_heavy.py::test_T39_what_an_analyst_buys_is_shown_to_that_one_alone",),
    ),
    Mutant(
        "pre-checks of rho",
        "a check before the first ask knows less room than the ledger's filter",
        "terms/purse.py",
        "        short = facts.rho is not None and spend.exact > facts.rho",
        "        short = facts.rho is not None and spend.exact > facts.rho * Fraction(9, 10)",
        ("tests/terms/test_purse.py::test_SR3_a_check_before_the_first_ask_says_what_the_ledger_says",),
    ),
    Mutant(
        "sums over halves",
        "sums are centred on one noisy number, whose noise never averages out",
        "terms/subset_covariance.py",
        "    found: Floats = (a - a.mean(axis=0)).T @ (b - b.mean(axis=0)) / (len(a) - 1)",
        "    found: Floats = (a - a[0]).T @ (b - b[0]) / len(a)",
        (
            "tests/terms/test_subset_covariance.py::test_it_is_the_covariance_whatever_is_added_to_a_column",
            "tests/learn/test_vertical.py::test_S0_12_errors_of_halves_are_as_large_as_they_say_where_noise_is",
        ),
    ),
    Mutant(
        "heavy groups",
        "noise alone chooses the number of groups, of whom some have two people",
        "release/subsets/estimates.py",
        "    return int(max(min(wish, people / PEOPLE, MOST), 2))",
        "    return int(max(min(wish, MOST), 2))",
        (
            "tests/release/subsets/test_estimates.py::test_groups_have_ten_people_or_more",
            "tests/release/subsets/test_estimates.py::test_S3_12_heavy_intervals_hold_at_the_default_number_of_groups",
        ),
    # From cells to people.
    Mutant(
        "ids of frames",
        "decimals that name people are read through doubles",
        "curator/engines/person_column.py",
        '        return "number", _texts(None if cell is None else _digits(cell) for cell in column.to_pylist())',
        '        return "number", _texts(None if cell is None else str(float(cell)) for cell in column.to_pylist())',
        ("tests/privacy/test_ids.py::test_T97_distinct_ids_are_distinct_people[frame]",),
    ),
    Mutant(
        "ids of files",
        "decimals that name people are read through doubles by DuckDB",
        "curator/engines/person.py",
        '        digits = f"CAST({item} AS VARCHAR)"',
        '        digits = f"CAST(CAST({item} AS DOUBLE) AS VARCHAR)"',
        ("tests/privacy/test_ids.py::test_T97_distinct_ids_are_distinct_people[parquet]",),
    ),
    Mutant(
        "ids by the nanosecond",
        "times that name people lose what is finer than a microsecond",
        "curator/engines/person.py",
        '        return "instant", f"CASE WHEN abs({plain}) < {grammar.BEYOND} THEN epoch_ns({item}) END"',
        '        return "moment", plain',
        ("tests/privacy/test_ids.py::test_T97_distinct_ids_are_distinct_people[parquet]",),
    ),
    Mutant(
        "ids past 2^53",
        "floating-point ids that may have been rounded to one are let through",
        "curator/engines/person.py",
        '    "double": 2**53,',
        '    "double": 2**63,',
        ("tests/privacy/test_ids.py::test_T97_ids_that_may_have_been_rounded_stop_the_owner",),
    ),
    Mutant(
        "ids of two kinds",
        "texts in one table and numbers in another are let through, and one person is two",
        "curator/engines/person.py",
        '    if len(found) > 1 and fold != "spelling":',
        '    if len(found) > 9 and fold != "spelling":',
        ("tests/privacy/test_ids.py::test_T16_equal_values_are_one_person_in_all_tables",),
    ),
    Mutant(
        "ids folded unasked",
        "texts that differ by case are one person though their owner did not say so",
        "curator/engines/person.py",
        "        return item",
        "        return read_sql.lowered(item)",
        ("tests/privacy/test_ids.py::test_T16_texts_are_people_as_the_owner_folds_them",),
    ),
    Mutant(
        "ids of older ledgers",
        "a ledger from before `fold` takes its people apart",
        "curator/ledger/entries.py",
        '        unit = dataclasses.replace(unit, fold="spelling")',
        "        unit = dataclasses.replace(unit, fold=None)",
        ("tests/privacy/test_ids.py::test_T97_ledgers_from_before_keep_their_fold",),
    Mutant(
        "sulq 0.1.0, a person space taken for a path",
        "a ledger goes by the data's name: renamed, in another order or alone, spent people have a fresh budget",
        "curator/ledger/shelves.py",
        "        return choose(sources, books) or begun()",
        "        return begun()",
        (
            "tests/privacy/test_spaces.py::test_T98_the_ledger_is_found_by_what_it_covers",
            "tests/privacy/test_spaces.py::test_T98_no_act_on_files_raises_what_is_left",
        ),
    ),
    Mutant(
        "sulq 0.1.0, a copy beside",
        "what a file's bytes are is not looked at: a copy has a budget of its own",
        "curator/ledger/sources.py",
        '        if self.content and source.content and self.content == _mac(key, "bytes", source.content):',
        "        if False:",
        ("tests/privacy/test_spaces.py::test_T98_the_ledger_is_found_by_what_it_covers",),
    ),
    Mutant(
        "sulq 0.1.0, a ledger named anew",
        "any new ledger may be named for data that another one covers",
        "curator/ledger/shelves.py",
        "    if new_people or (own is not None and all(own.knows(source) for source in sources)):",
        "    if own is None or new_people or all(own.knows(source) for source in sources):",
        ("tests/privacy/test_spaces.py::test_T98_a_second_ledger_needs_the_owners_word",),
    ),
    Mutant(
        "sulq 0.1.0, ALTER TABLE RENAME",
        "a table goes by its name: renamed, it has a fresh budget",
        "curator/ledger/sources.py",
        "            shared = self.place == source.place or not {*self.numbers}.isdisjoint(source.numbers)",
        "            shared = self.place == source.place",
        ("tests/privacy/test_spaces.py::test_T98_a_table_is_found_by_its_oid",),
    ),
    Mutant(
        "sulq 0.1.0, size and time in the ledger",
        "what is registered of a source holds its size and time as they are",
        "curator/ledger/sources.py",
        """    return source if source == "frame" else f"mac {_mac(key, 'source', source)}\"""",
        "    return source",
        ("tests/privacy/test_spaces.py::test_SR25_size_time_and_bytes_stay_in_the_ledger_as_macs",),
    ),
)
