"""A clerk for tests: the shipped one, which waits as long as a busy machine takes to hear whether rows are open."""

from __future__ import annotations

from sulq.service.clerk import dataset_manager, main

if __name__ == "__main__":
    dataset_manager.MAX_FIRST_WORD_SECONDS = 240.0
    main.main()
