"""What a web process counts of its requests, and how each of several knows what the others counted.

A scrape reaches one of them. So each writes its counts, once a second, into its part of a file that the supervisor
opened for all and that has no name, and whoever is scraped reads all parts. Counts are names, codes and numbers.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Final, cast

from sulq.service.logs import Histogram
from sulq.service.process_use import process_use

# Any word may stand for a method in a request: it becomes a label only if it is one of these.
METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"})
NONE: Final = "none"  # the label of what reached no route
PART_BYTES: Final = 2**18
HEAD_BYTES: Final = 8  # the length and the check sum of what follows
MAX_TRIES: Final = 3  # to read a part that is being written
SHARE_SECONDS: Final = 1.0
Told = Mapping[str, object]


class RequestCounts:
    """Counts of one web process; the event loop's thread alone counts and reads."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[tuple[str, str], Histogram] = {}
        self._refusals: Counter[str] = Counter()
        self.under_way = 0

    def request(self, method: str, route: str, status: int, seconds: float, code: str | None = None) -> None:
        """One request, ended: by its route's pattern, and the code that refused it."""
        method = method if route and method in METHODS else NONE
        self._requests[method, route or NONE, status] += 1
        self._times.setdefault((method, route or NONE), Histogram()).add(seconds)
        if code is not None:
            self._refusals[code] += 1

    def told(self) -> dict[str, object]:
        """All counts since the process started."""
        requests = [{"method": m, "route": r, "status": str(s), "count": n} for (m, r, s), n in self._requests.items()]
        times = [{"method": m, "route": r, **found.told()} for (m, r), found in self._times.items()]
        refusals = [{"code": code, "count": n} for code, n in self._refusals.items()]
        counts = {"requests": requests, "times": times, "refusals": refusals, "under_way": self.under_way}
        return {"process": process_use(), **counts}


class SharedCounts:
    """The counts of all web processes: `fd` is the file that all of them have open, None where there is one alone."""

    def __init__(self, fd: int | None = None, number: int = 0, processes: int = 1) -> None:
        self._fd = fd
        self._number = number
        self._processes = processes

    def put(self, own: Told) -> None:
        """Let the others know this process's counts."""
        body = json.dumps(own).encode()
        if self._fd is not None and len(body) <= PART_BYTES - HEAD_BYTES:
            head = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big")
            os.pwrite(self._fd, head + body, self._number * PART_BYTES)

    def all(self, own: Told) -> dict[str, Told]:
        """Everybody's counts, by the process's name; of the others as they were a second ago or later."""
        found = {f"web-{self._number}": own}
        for number in range(self._processes):
            other = None if number == self._number else self._read(number)
            if other is not None:
                found[f"web-{number}"] = other
        return dict(sorted(found.items()))

    def _read(self, number: int) -> Told | None:
        """Another's part; None where it has written none yet, or writes whenever it is looked at."""
        for _ in range(MAX_TRIES if self._fd is not None else 0):
            part = os.pread(cast("int", self._fd), PART_BYTES, number * PART_BYTES)
            body = part[HEAD_BYTES : HEAD_BYTES + int.from_bytes(part[:4], "big")]
            if body and zlib.crc32(body).to_bytes(4, "big") == part[4:HEAD_BYTES]:
                return cast("Told", json.loads(body))
        return None
