"""The audit's table read back: on a machine without the audit's state, what was run before is what the page says."""

from __future__ import annotations

import re
from typing import Any, Final

ROW: Final = re.compile(
    r"\| (?P<suite>.*?) \| (?P<cases>.*?) \| (?:[a-z]+ \| )?(?P<done>[0-9,]+) \| (?P<planned>[0-9,]+) "
    r"\| (?P<result>.*?) \| (?P<seconds>.*?) \|"
)
HEAD: Final = re.compile(r"`(?P<target>[^`]+)`")
DAY: Final = re.compile(r"^(\d{4}-\d{2}-\d{2});", re.MULTILINE)
EARLIER: Final = ", code of "


def printed(page: str) -> dict[str, dict[str, Any]]:
    """Suites by name, as the state keeps them; of which code they speak is not known any more, so of an earlier one."""
    written = DAY.search(page)
    day = written.group(1) if written else ""
    found: dict[str, dict[str, Any]] = {}
    suite: dict[str, Any] = {}
    for row in map(ROW.fullmatch, page.splitlines()):
        if row is None:
            continue
        head = HEAD.fullmatch(row["suite"].strip())
        if head is not None:
            name = head["target"]
            result, _, named = row["result"].partition(EARLIER)
            suite = {"name": name, "target": name, "result": result, "day": named or day}
            suite |= {"seconds": float(row["seconds"].replace(",", "")), "counts": {}}
            # A suite may stand there twice, for this code and for an earlier one: the fuller run is worth more.
            found[name] = suite | {"earlier": found.get(name, {})} if name in found else suite
            suite = found[name]
        if row["cases"].strip():
            suite["counts"][row["cases"].strip()] = [int(row[each].replace(",", "")) for each in ("done", "planned")]
    return found
