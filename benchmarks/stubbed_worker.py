"""A worker that adds no noise: what the service would do without its other promise. Over made-up rows alone."""

from __future__ import annotations

from sulq.curator.run import Rows
from sulq.server import worker

if __name__ == "__main__":
    _, *others = Rows.__init__.__defaults__  # the first is the noise
    Rows.__init__.__defaults__ = (lambda _, exact: exact.open(), *others)
    worker.main()
