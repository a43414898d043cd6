"""All planted bugs: of other systems (THREATS 1.12), found in our own, mistakes of proposers and on fast paths."""

from __future__ import annotations

from typing import Final

from tools.mutants_others import OTHERS
from tools.mutants_own import OWN
from tools.mutants_paths import PATHS
from tools.mutants_proposers import PROPOSERS

MUTANTS: Final = (*OTHERS, *OWN, *PROPOSERS, *PATHS)
