"""How a contender is spoken to; needs nothing but Python, so that any environment can run it.

A contender is a script that calls `serve`. It is started with one word, a JSON object that names the workload, the
data, the loss and the threads. It gets ready (`prepare`, not timed as an answer but told) and says so; then, for each
line on its standard input, it answers once and tells how long that took and what it found:

    {"ready": seconds, "version": ..., "note": ...}
    {"seconds": ..., "values": [...]}
    {"unsupported": "why it has no such question"}   and it ends
    {"failed": "what it raised"}                     and it ends
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

WORDS = 300  # of an error's text


class Unsupported(Exception):
    """The peer has no such question."""


def tell(line):
    """One line to whoever started this; libraries may print, so it goes where they do not."""
    OUT.write(json.dumps(line) + "\n")
    OUT.flush()


def confine(threads):
    """So many of the processors, told to every library that would look for itself."""
    own = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, own)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = str(len(own))


def serve(prepare):
    """Get ready for the workload on the command line and answer as often as asked.

    `prepare` takes what was told and gives the call that answers once, the library's version, and a sentence on what
    is not the same as for others, or "". The call gives a list of numbers, or a function that reads them out of what
    the library gave, which is not timed.
    """
    warnings.simplefilter("ignore")
    told = json.loads(sys.argv[1])
    confine(told["threads"])
    try:
        start = time.perf_counter()
        run, version, note = prepare(told)
        tell({"ready": time.perf_counter() - start, "version": version, "note": note})
        for _ in sys.stdin:
            start = time.perf_counter()
            found = run()
            taken = time.perf_counter() - start
            values = found() if callable(found) else found
            tell({"seconds": taken, "values": [None if v is None else float(v) for v in values]})
    except Unsupported as why:
        tell({"unsupported": str(why)})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told and not dropped
        tell({"failed": f"{type(error).__name__}: {error}"[:WORDS]})
        sys.exit(1)


# Standard output is a library's to print on: what is told keeps the pipe, and print goes to standard error.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
