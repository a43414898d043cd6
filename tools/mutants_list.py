"""All planted bugs: of other systems (THREATS 1.12), those found in our own, and mistakes of what proposes."""

from __future__ import annotations

from typing import Final

from tools.mutants_others import OTHERS
from tools.mutants_own import OWN
from tools.mutants_proposers import PROPOSERS

MUTANTS: Final = (*OTHERS, *OWN, *PROPOSERS)
