"""How an ask is paid."""

from __future__ import annotations

import pytest

from sulq.api.questions import Pay
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon


def test_an_ask_is_paid_by_a_spend_or_by_an_accuracy():
    """Both together are refused; by default a stored answer may serve."""
    Pay(within=3).price_once()
    with pytest.raises(QuestionError, match="not both"):
        Pay(Epsilon(1), within=3).price_once()
    assert Pay(Epsilon(1)).reuse
    assert not Pay(Epsilon(1), fresh=True).reuse
    with pytest.raises(QuestionError, match="True or False"):
        assert Pay(Epsilon(1), fresh=1).reuse
