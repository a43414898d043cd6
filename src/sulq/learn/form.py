"""A learner's form, read off its signature; the columns to learn from and to predict are the doors' own fields."""

from __future__ import annotations

import inspect

from sulq.forms.signature import Form, signed
from sulq.learn.base import Learner


def form(learner: type[Learner]) -> Form:
    """The form of a learner."""
    made = learner.__init__
    return signed(learner.__name__, learner.kind, made, [inspect.getdoc(learner) or "", inspect.getdoc(made) or ""])
