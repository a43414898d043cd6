"""A clerk for tests: the shipped one, which waits as long as a busy machine takes to hear whether rows are open."""

from __future__ import annotations

from sulq.server import clerk, staff

if __name__ == "__main__":
    staff.FIRST_WORD = 240.0
    clerk.main()
