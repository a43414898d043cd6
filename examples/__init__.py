"""Short stories in code: the owner, the analyst, the auditor."""
