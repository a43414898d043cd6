"""How far a question travels through the code: files entered and moves between files, kept by docs/contribute."""

from __future__ import annotations

import math
import sys

from sulq.errors import QuestionError
from tools import walk
from tools.trace import Trace

SLACK = 1.1  # a tenth more than the page says


def test_the_four_walks_are_no_longer_than_the_page_says() -> None:
    """Files and moves of each walk, on the code of today, against docs/contribute/walks.md."""
    allowed = walk.recorded(walk.PAGE.read_text(encoding="utf-8"))
    found, http = walk.walked()
    assert found.keys() == allowed.keys()
    assert set(http) == {"web", "clerk", "worker"}
    for name, (_, warm) in found.items():
        files, moves = allowed[name]
        assert len(warm.files) <= math.ceil(SLACK * files), f"{name}: {sorted(warm.files)}"
        assert warm.moves <= math.ceil(SLACK * moves), name


def test_a_trace_counts_calls_between_files_and_not_within_one() -> None:
    """An error's construction enters errors.py once; a trace that ended counts nothing more."""
    trace = Trace()
    with trace.during():
        QuestionError("bad-request", "It does not fit.")
    assert set(trace.files) == {"errors.py"}
    assert trace.moves == 0
    assert trace.depth >= 1
    QuestionError("bad-request", "It does not fit.")
    assert set(trace.files) == {"errors.py"}
    assert sys.getprofile() is None


def test_the_page_is_read_as_it_is_written() -> None:
    """What `page` writes, `recorded` reads; a walk over several processes is one."""
    parts = {
        "web": walk.Walk({"a.py": "f", "b.py": "g"}, 3, 2),
        "clerk": walk.Walk({"b.py": "g", "c.py": "h"}, 1_000, 5),
    }
    whole = walk.together(parts)
    assert whole == walk.Walk({"a.py": "f", "b.py": "g", "c.py": "h"}, 1_003, 5)
    text = walk.page(dict.fromkeys(walk.BEFORE, (whole, whole)), parts)
    assert walk.recorded(text) == dict.fromkeys(walk.BEFORE, (3, 1_003))
