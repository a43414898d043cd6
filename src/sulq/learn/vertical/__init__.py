"""SVD and PCA of a table whose columns lie in several databases that share only the people's key.

May be imported: the two learners. Each database sums its columns over the same random groups of people, named by a
public hash of the person (SR11); how such sums vary together from group to group tells how the columns do from person
to person. docs/theory/vertical.md has the proof.
Never here: a row of any database; none ever sees another's.
"""

from __future__ import annotations

from sulq.learn.vertical.learners import PCA, SVD

__all__ = ["PCA", "SVD"]
