"""Work that takes longer than a request: learners and releases, asked through the clerk.

Runs in a web process with its rights; never sees a row.
"""
