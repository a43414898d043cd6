"""The tests of sulq: a mirror of src/sulq, and beside it suites over a seam, the docs and the repository."""
