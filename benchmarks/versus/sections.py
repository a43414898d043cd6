"""The tables of the page, a function a workload: its lines of Markdown, and the verdicts in them."""

from __future__ import annotations

import json
import math
import statistics
import textwrap
from collections.abc import Iterator, Sequence

from benchmarks.versus.cast import OTHERS, OURS
from benchmarks.versus.verdicts import (
    OPTIMAL,
    Line,
    Verdict,
    beyond,
    compared,
    of,
    optimum,
    ratio,
    seconds,
    slope,
    title,
)

MOST = 2 << 30  # bytes of memory at any number of rows
STEEP = (0.9, 1.1)
TWICE = 2.0
FEWEST = 100  # draws of a peer; of fewer the standard error itself is not known
Section = tuple[list[str], list[Verdict]]


def prose(text: str) -> list[str]:
    """Sentences as lines of the page."""
    return textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)


def comparisons(lines: Sequence[Line]) -> Section:
    """A table of timed contenders."""
    rows = [
        "| question | contender | sulq | contender | | bar | | memory, MB | notes |",
        "|---|---|---:|---:|---:|---|---|---:|---|",
    ]
    verdicts = []
    for line in lines:
        verdict = compared(line)
        verdicts.append(verdict)
        held = f"{line['memory'] >> 20} ({line['ours_memory'] >> 20})" if line.get("memory") else "-"
        few = f", {len(line['scores'])} rounds" if 0 < len(line["scores"]) < 5 else ""
        figures = f"{seconds(line['ours'])} | {seconds(line['scores'])}{few} | {verdict.figure} | {verdict.bar}"
        said = line.get("note", "")
        rows.append(f"| {title(line)} | {line['key'][-1]} | {figures} | {verdict.word} | {held} | {said} |")
    return rows, verdicts


def timed(lines: Sequence[Line], heading: str, words: str) -> Section:
    """A part that is one table of timed contenders."""
    if not lines:
        return [heading, "", "Not measured."], []
    rows, verdicts = comparisons(lines)
    return [heading, "", *prose(words), "", *rows], verdicts


def queries(lines: Sequence[Line]) -> Section:
    """A, at the largest number of rows there is."""
    own = of(lines, "A")
    most = max((line["key"][2] for line in own), default=0)
    here = sorted((line for line in own if line["key"][2] == most), key=_question)
    rows, verdicts = timed(
        here,
        f"## A. Queries, {most:,} rows" if most else "## A. Queries",
        "A filtered count; sum and mean; count, sum and mean in 50 groups; a histogram of 101 bins; a count in 50"
        " groups of at most 5 rows a person. sulq asks the same SQL as raw DuckDB, of its prepared copy; raw"
        " DuckDB and"
        " Polars read the original Parquet and bound nobody. Memory in brackets: sulq's.",
    )
    return [*rows, *(["", "![Times slower than sulq](benchmarks-peers/queries.svg)"] if here else [])], verdicts


def _question(line: Line) -> tuple[int, int]:
    order = ("filtered count", "sum and mean", "groups", "histogram", "person groups")
    return order.index(line["key"][1]), [who.name for who in OTHERS].index(line["key"][-1])


def accuracy(lines: Sequence[Line]) -> Section:
    """B: root mean square errors."""
    own = of(lines, "B")
    heading = "## B. Accuracy"
    if not own:
        return [heading, "", "Not measured."], []
    rows, verdicts = [], []
    for question in dict.fromkeys(line["key"][1] for line in own):
        here = {line["key"][-1]: line for line in of(own, "B", question)}
        if OURS.name in here and here[OURS.name]["scores"]:
            told, found = _accurate(question, here)
            rows.append(told)
            verdicts += found
    return [
        heading,
        "",
        *prose(
            f"Root mean square errors at epsilon 1 on {own[0]['key'][2]:,} rows, income within 0 to 200,000. The"
            " law's own is computed from the probabilities of the noise of a real answer; the optimum is that of"
            " the mechanism (discrete Laplace; for a mean two one-sided sums). Drawn: the same noise, 100,000"
            " times. A peer is better only past 3 standard errors, from at least 100 draws."
        ),
        "",
        "| answer | optimum | law's own | variance over optimum | drawn | peers | |",
        "|---|---:|---:|---:|---:|---|---|",
        *rows,
        *(
            f"- {line['key'][-1]}, {line['key'][1]}: {line['outcome']}: {line['why']}"
            for line in own
            if not line["scores"]
        ),
    ], verdicts


def _few(line: Line) -> str:
    biased = abs(line["bias"]) > 4 * line["scores"][0] / line["draws"] ** 0.5 and line["draws"] >= FEWEST
    return f", {line['draws']} draws" * (line["draws"] < FEWEST) + f", bias {line['bias']:.2g}" * biased


def _accurate(question: str, here: dict[str, Line]) -> tuple[str, list[Verdict]]:
    mine = here[OURS.name]
    told = json.loads(mine["note"])
    best = optimum(question, epsilon=1.0, rows=mine["key"][2], part=told.get("part", 0.5))
    (drawn,), slack = mine["scores"], mine["slack"]
    over = told["variance"] / best
    agrees = abs(drawn - math.sqrt(told["variance"])) <= 4 * slack
    peers = [line for name, line in here.items() if name != OURS.name and line["scores"]]
    ahead = [
        line for line in peers if line["draws"] >= FEWEST and drawn > line["scores"][0] + 3 * (slack + line["slack"])
    ]
    listed = "; ".join(
        f"{line['key'][-1]} {line['scores'][0]:.4g} ± {line['slack']:.2g}{_few(line)}"
        + (f" ({line['note']})" if line["note"] else "")
        for line in peers
    )
    verdicts = [
        Verdict(f"variance of a {question}", f"{over:.4f} of the optimum", f"at most {OPTIMAL:g}", over <= OPTIMAL),
        Verdict(f"draws of a {question}", f"{drawn:.5g}", "within 4 standard errors of the law", agrees),
        Verdict(
            f"error of a {question}", f"{drawn:.4g}", "no peer better by more than 3 standard errors",
            not ahead, "; ".join(f"{line['key'][-1]} {line['scores'][0]:.4g}: {line['note']}" for line in ahead),
        ),
    ]  # fmt: skip
    word = "; ".join(each.word for each in verdicts)
    figures = f"{math.sqrt(best):.5g} | {math.sqrt(told['variance']):.5g} | {over:.4f} | {drawn:.5g} ± {slack:.2g}"
    return f"| {question} | {figures} | {listed} | {word} |", verdicts


def kernels(lines: Sequence[Line]) -> Section:
    """C."""
    rows, verdicts = timed(
        of(lines, "C"),
        "## C. Learning",
        "A covariance matrix (d=100) against NumPy's X'X, and a round of k-means (d=10, k=10) against one iteration of"
        " scikit-learn's Lloyd, numbers in memory, the same number of threads; 1,000,000 rows where no other number is"
        " told. A round of sulq's is a whole ask: plan, durable debit, sums, noise.",
    )
    return [
        *rows,
        "",
        "Learners side by side with diffprivlib's: [benchmarks-learn.md](benchmarks-learn.md).",
    ], verdicts


def marginals(lines: Sequence[Line]) -> Section:
    """D: one quick case, and how far off it is."""
    own = of(lines, "D")
    rows, verdicts = timed(
        own,
        "## D. Marginals",
        "All pairs of ten yes-or-no columns, 50,000 rows. More tables, methods and epsilons:"
        " [benchmarks-release.md](benchmarks-release.md).",
    )
    for line in own:
        if line.get("found"):
            theirs, mine = statistics.mean(line["found"]), statistics.mean(line["ours_found"])
            figure = f"{mine:.5f} against {theirs:.5f}"
            rows += ["", f"Mean L1 distance of a pair over the number of rows: {figure} ({line['key'][-1]})."]
            verdicts.append(Verdict("distance of pairs", figure, "not above mbi's", mine <= theirs))
    return rows, verdicts


def noise(lines: Sequence[Line]) -> Section:
    """E."""
    return timed(
        of(lines, "E"),
        "## E. Noise on a million cells",
        "Discrete Laplace and discrete Gaussian of scale 1,000, integers in and out. NumPy's is the limit of what"
        " anyone could reach, and protects nobody; diffprivlib's Gaussian has the scale nearest to that.",
    )


def service(lines: Sequence[Line]) -> Section:
    """F."""
    heading, none = "## F. The service", "No peer here has a service that answers with a durable debit."
    own = of(lines, "F")
    if not own:
        return [heading, "", f"Not measured. {none}"], []
    (line,) = own
    spread = f"{statistics.median(line['scores']):.0f} ({min(line['scores']):.0f}..{max(line['scores']):.0f})"
    waits = f"half within {line['p50'] * 1000:.0f} ms, 99% within {line['p99'] * 1000:.0f} ms"
    told = f"{line['analysts']} analysts over HTTP, {line['key'][2]:,} rows, every ask distinct: {spread} asks a second"
    return [heading, "", f"{told}, {waits}. {none}", "Ratios and bars: [benchmarks.md](benchmarks.md)."], []


def scaling(lines: Sequence[Line]) -> Section:
    """G."""
    heading = "## G. Growing tables"
    own = of(lines, "G", "groups")
    if not own:
        return [heading, "", "Not measured, on Spark neither."], []
    clustered, more = spark(lines)
    copies, bounded = persons(lines)
    rows = [
        "| rows | threads | sulq | raw DuckDB | ratio | memory of sulq, MB | of DuckDB | preparing | its memory |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in own:
        size, threads = line["key"][2:4]
        made = next(iter(of(lines, "G", "prepare", size)), {"scores": []})
        held = [f"{line[name] >> 20}" if line.get(name) else "-" for name in ("ours_memory", "memory")]
        figures = f"{seconds(line['ours'])} | {seconds(line['scores'])} | {1 / ratio(line):.2f}x | {' | '.join(held)}"
        kept = f"{seconds(made['scores'])} | {made.get('memory', 0) >> 20}"
        rows.append(
            f"| {size:,} | {threads} | {figures} | {kept} |"
            if line["outcome"] == "answered"
            else f"| {size:,} | {threads} | {line['outcome']}: {line['why']} |"
        )
    verdicts = list(_growth(lines, own))
    rows += ["", *(f"- {each.what}: {each.figure} ({each.bar}): {each.word}" for each in verdicts)]
    return [
        heading,
        "",
        "Count, sum and mean in 50 groups from disk, as on a machine with 4 GB of memory. Preparing is done once.",
        "",
        *rows,
        "",
        "![Time by rows](benchmarks-peers/scaling.svg)",
        "",
        *copies,
        "",
        *clustered,
    ], [*verdicts, *bounded, *more]


def persons(lines: Sequence[Line]) -> Section:
    """G, a copy with at most five rows of each person."""
    own = [*of(lines, "G", "preparing persons"), *of(lines, "G", "preparing rows")]
    if not own:
        return ["Preparing rows of persons: not measured."], []
    rows = [
        *prose(
            "Preparing, from nothing, a copy with at most five rows of each person, beside a table of the same rows"
            " that others write, and beside sulq's own copy of rows without persons:"
        ),
        "",
        "| rows | beside | sulq | beside it | sulq over it | bar | | memory of sulq, MB |",
        "|---:|---|---:|---:|---:|---|---|---:|",
    ]
    verdicts = []
    for line in sorted(own, key=lambda each: each["key"][2]):
        (_, question, size, who), found = line["key"], 1 / ratio(line)
        name = "sulq, rows without persons" if question == "preparing rows" else who
        bar, met = ("at most 2x", found <= TWICE) if question == "preparing rows" else ("", None)
        told = f"{found:.2f}x" if line["scores"] else f"{line['outcome']}: {line['why']}"
        verdict = Verdict(f"preparing {size:,} rows of persons, beside {name}", told, bar, met)
        verdicts += [verdict] if bar else []
        figures = f"{seconds(line.get('ours', []))} | {seconds(line['scores'])} | {told} | {bar} | {verdict.word}"
        rows.append(f"| {size:,} | {name} | {figures} | {line.get('ours_memory', 0) >> 20} |")
    held = max((line.get("ours_memory", 0) for line in own), default=0)
    if held:
        verdicts.append(
            Verdict("most memory of preparing persons", f"{held / 2**30:.2f} GB", "under 2 GB", held < MOST)
        )
    return rows, verdicts


def spark(lines: Sequence[Line]) -> Section:
    """G, on a cluster of two workers on this machine."""
    own = of(lines, "G", "spark")
    if not own:
        return ["On Spark: not measured."], []
    rows, verdicts = ["On Spark, beside the same plain job without privacy (`python -m benchmarks.spark`):", ""], []
    for line in own:
        if line["outcome"] != "answered":
            rows.append(f"- {line['outcome']}: {line['why']}")
            continue
        met = 1 / ratio(line) <= line["bar"]
        verdict = Verdict(f"{line['key'][2]} on Spark", f"{1 / ratio(line):.2f}x", f"at most {line['bar']:g}x", met)
        rows.append(f"- {verdict.what}: {verdict.figure} ({verdict.bar}): {verdict.word}")
        verdicts.append(verdict)
    return rows, verdicts


def _growth(lines: Sequence[Line], own: Sequence[Line]) -> Iterator[Verdict]:
    for threads in (1, 2):
        found = slope(lines, threads)
        if found is not None:
            what = f"slope of time from 1e7 to 1e8 rows, {threads} thread{'s' if threads > 1 else ''}"
            rest = beyond(lines, threads)
            why = "" if rest is None else f"Less what an ask of 1e5 rows takes, whatever it reads, it is {rest:.2f}."
            yield Verdict(what, f"{found:.3f}", f"{STEEP[0]} to {STEEP[1]}", STEEP[0] <= found <= STEEP[1], why)
    held = max((line["ours_memory"] for line in own if line.get("ours_memory")), default=0)
    if held:
        yield Verdict("most memory of an ask", f"{held / 2**30:.2f} GB", "under 2 GB", held < MOST)
    made = max((line["memory"] for line in of(lines, "G", "prepare") if line.get("memory")), default=0)
    if made:
        yield Verdict("most memory of preparing", f"{made / 2**30:.2f} GB", "under 2 GB", made < MOST)


def open_keys(lines: Sequence[Line]) -> Section:
    """H: how many groups are shown, and how far off their numbers of people are."""
    heading = "## H. Undeclared keys"
    own = of(lines, "H")
    if not own:
        return [heading, "", "Not measured."], []
    words = (
        "50,000 people with 1 or 10 of 200,000 labels each, by Zipf's law; every label that enough people have, with"
        " its noisy number of people, for (1, 1e-5) in one ask: groups shown, mean of so many answers, and the root"
        " mean square error of their numbers. More of it, with groups alone and 100 labels:"
        " [benchmarks-epsilon.md](benchmarks-epsilon.md#undeclared-keys)."
    )
    rows, verdicts = ["| labels a person | contender | groups | error | answers | | notes |"], []
    rows.append("|---:|---|---:|---:|---:|---|---|")
    for line in own:
        each, who = line["key"][2:]
        if not line["scores"]:
            rows.append(f"| {each} | {who} | {line['outcome']}: {line['why']} | | | | |")
            continue
        (mine,) = of(own, "H", "undeclared keys", each, OURS.name)
        shown, error = statistics.mean(line["scores"]), statistics.mean(found[1] for found in line["found"])
        word = ""
        if who != OURS.name and mine["scores"]:
            slack = 3 * math.hypot(_slack(mine), _slack(line))
            met = statistics.mean(mine["scores"]) >= shown - slack
            figure = f"{statistics.mean(mine['scores']):,.0f} groups"
            bar = f"no fewer than {shown:,.0f}, within 3 standard errors"
            verdicts.append(Verdict(f"{each} labels a person, against {who}", figure, bar, met))
            word = verdicts[-1].word
        figures = f"{shown:,.0f} | {error:.3g} | {len(line['scores'])} | {word} | {line.get('note', '')}"
        rows.append(f"| {each} | {who} | {figures} |")
    return [heading, "", *prose(words), "", *rows], verdicts


def _slack(line: Line) -> float:
    """The standard error of a line's mean."""
    many = len(line["scores"])
    return statistics.stdev(line["scores"]) / many**0.5 if many > 1 else 0.0


def shapes(lines: Sequence[Line]) -> Section:
    """I."""
    return timed(
        of(lines, "I"),
        "## I. Many keys, many columns, text",
        "A count by a million declared keys; one sum of a table of 200 columns; a copy of a CSV file, read strictly,"
        " into a file. The first two sulq asks of its prepared copy, and others of the original.",
    )


SECTIONS = (queries, accuracy, kernels, marginals, noise, service, scaling, open_keys, shapes)
