"""Processes of a service killed at random while analysts ask over HTTP, and what must not have come of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import httpx

import sulq
from sulq.answers import wire
from sulq.curator.ledger.opening import verify
from tests.service import faulty_worker
from tests.service.service import Running, service

KINDS = ("clerk", "web-0", "worker-0.0", "worker-0.1")
PRICE = 0.001
ANALYSTS = 4
ENOUGH = 6  # answers after a kill: the service is back


def question(number: int, spend: float = PRICE) -> dict:
    """A count that names a number: some of them make the tests' worker fail."""
    asked = sulq.Sums((sulq.lit(1),), sulq.col("income") < number)
    return {"question": wire.to_json(asked), "spend": wire.to_json(sulq.Epsilon(spend))}


@dataclass
class Seen:
    """What analysts were told, and what the ledger and the workers wrote down."""

    answers: list[int] = field(default_factory=list)  # the entry of each answer's receipt
    repeated: list[tuple[str, object]] = field(default_factory=list)  # idempotency keys and their values
    debits: dict[int, str | None] = field(default_factory=dict)  # entry and kept answer
    runs: list[int] = field(default_factory=list)
    spent: Fraction = Fraction(0)
    verified: int = 0
    refusals: Counter = field(default_factory=Counter)


def violations(seen: Seen) -> list[str]:
    """What must not be: an unpaid answer, two answers for one debit, a second run, spending that is not the sum."""
    found = [f"answer {seq} has no debit" for seq in seen.answers if seq not in seen.debits]
    found += [f"debit {seq} was answered {n} times" for seq, n in Counter(seen.answers).items() if n > 1]
    found += [f"debit {seq} was run {n} times" for seq, n in Counter(seen.runs).items() if n > 1]
    found += [f"a run of {seq}, which is no debit" for seq in seen.runs if seq not in seen.debits]
    values: dict[str, object] = {}
    found += [f"key {key} has two answers" for key, value in seen.repeated if values.setdefault(key, value) != value]
    if seen.spent != len(seen.debits) * sulq.Epsilon(PRICE).exact:
        found.append("what was spent is not what was debited")
    if seen.verified != len(seen.debits):
        found.append("the file and the transcript differ")
    return found


def asking(running: Running, stop: threading.Event, seen: Seen, number: int) -> None:
    """Ask over HTTP on and on; every fifth question carries a key and is asked until it has an answer."""
    headers = {"Authorization": f"Bearer {running.tokens['alice' if number % 2 else 'bob']}"}
    turn = 0
    with httpx.Client(base_url=running.url, headers=headers, timeout=120) as client:
        while not stop.is_set():
            turn += 1
            body = question(faulty_worker.PAUSES if turn % 7 == 0 else 10_000 + turn)
            key = f"{number}-{turn}" if turn % 5 == 0 else None
            answer = _answer(client, {**body, "key": key}, seen)
            if key is not None and answer is not None:
                again = _answer(client, {**body, "key": key}, seen, first=False)
                seen.repeated += [(key, found.value) for found in (answer, again) if found is not None]


def _answer(client: httpx.Client, body: dict, seen: Seen, *, first: bool = True):
    try:
        reply = client.post("/v1/datasets/survey/ask", json=body)
    except httpx.HTTPError as error:
        seen.refusals[type(error).__name__] += 1
        time.sleep(0.02)
        return None
    if reply.status_code != 200:
        seen.refusals[reply.json()["error"]["code"]] += 1
        time.sleep(0.02)
        return None
    answer = wire.from_json(reply.json()["answer"])
    if first:
        seen.answers.append(answer.receipt.seq)
    return answer


def killed(rounds: int, draw: random.Random) -> Seen:
    """Kill one process after another under load, each time until the service answers again by itself."""
    seen = Seen()
    stop = threading.Event()
    with service(sulq.Epsilon(1000), web=1, worker="tests.service.faulty_worker", rate=10**6) as running:
        crowd = [threading.Thread(target=asking, args=(running, stop, seen, number)) for number in range(ANALYSTS)]
        for thread in crowd:
            thread.start()
        try:
            for turn in range(rounds):
                _kill(running, KINDS[turn % len(KINDS)], seen, draw)
        finally:
            stop.set()
            for thread in crowd:
                thread.join()
        running.ready()
        while page := running.ask("owner", "transcript", {"after": max(seen.debits, default=0)})["lines"]:
            seen.debits |= {line["seq"]: line["answer"] for line in page}
        seen.spent = wire.from_json(running.ask("owner", "budget")["spent"]).amount
        seen.runs = running.noted
        running.supervisor.stop()
        while running.supervisor.folder.exists():
            time.sleep(0.05)
        seen.verified = verify(running.folder / "survey.ledger").debits
    return seen


def _kill(running: Running, name: str, seen: Seen, draw: random.Random) -> None:
    time.sleep(draw.uniform(0.0, 0.3))
    pid = running.supervisor.pids().get(name)
    had = len(seen.answers)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 300
    while len(seen.answers) < had + ENOUGH:
        if time.monotonic() > until:
            raise AssertionError(f"no answers after {name} was killed: {seen.refusals}")
        time.sleep(0.02)
