"""A worker that adds no noise: what the service would do without its other promise. Over made-up rows alone."""

from __future__ import annotations

from sulq.kernel import run
from sulq.service.worker import main

if __name__ == "__main__":
    run.add_noise = lambda _, exact: exact.open()
    main.main()
