"""SVD and PCA of a table whose columns lie in several databases that share only the people's key.

No database ever sees another's rows. Each sums its columns over the same random groups of people, named
by a public hash of the person (SR11); how such sums vary together from group to group tells how the
columns do from person to person. docs/theory/vertical.md has the proof.
"""

from __future__ import annotations

from sulq.learn.vertical.learners import PCA, SVD

__all__ = ["PCA", "SVD"]
