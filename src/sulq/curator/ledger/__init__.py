"""What stands around the kernel's ledger: shares, idempotency keys, the transcript, anchors, which data it covers.

Entries are written and checked by `sulq.kernel.ledger`.

May be imported: the kernel's ledger, the language, answers' wire. Must never be here: a row, an engine, noise.
"""
