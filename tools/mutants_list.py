"""All planted bugs: those of other systems (THREATS 1.12), then those that were found in our own."""

from __future__ import annotations

from typing import Final

from tools.mutants_others import OTHERS
from tools.mutants_own import OWN

MUTANTS: Final = (*OTHERS, *OWN)
