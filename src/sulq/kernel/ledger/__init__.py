"""The ledger core: debits are durable, in one chain, and within the budget."""
