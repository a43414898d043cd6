"""Forms from signatures."""

from __future__ import annotations

import pytest

from sulq import Epsilon, Rho, SubLinear
from sulq.service.console.api import Refusal
from sulq.service.console.forms import fields_of, schema_parameters
from sulq.service.console.guard import Fields

SPEND = {
    "description": "What to pay: canonical JSON.",
    "anyOf": [{"type": "object", "properties": {"epsilon": {"type": "number"}}}, {"type": "object"}],
}
SCHEMA = {
    "$defs": {"Kind": {"type": "string", "enum": ["a", "b"]}},
    "required": ["columns", "kind"],
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "kind": {"$ref": "#/$defs/Kind", "description": "which"},
        "rounds": {"type": "integer", "default": 8, "minimum": 1, "title": "Rounds"},
        "rate": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "exact": {"type": "boolean", "default": False},
        "spend": {"anyOf": [SPEND, {"type": "null"}]},
        "spends": {"anyOf": [{"type": "array", "items": SPEND}, {"type": "null"}]},
        "options": {"type": "object"},
        "weights": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}], "default": None},
        "together": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
    },
}


def test_every_parameter_a_form_can_hold_has_its_field() -> None:
    """Lists of texts, choices, numbers, truths and a price; what no form holds is left at its default."""
    found = {field.name: field for field in fields_of(SCHEMA, Epsilon(1))}
    assert {name: field.widget for name, field in found.items()} == {
        "columns": "texts", "kind": "choice", "rounds": "whole", "rate": "number", "exact": "truth", "spend": "spend",
        "weights": "numbers", "together": "either",
    }  # fmt: skip
    assert found["kind"].choices == ("a", "b")
    assert found["rounds"].value == "8"
    assert found["columns"].required
    assert not found["rate"].required
    assert found["spend"].words == ""  # what it is in JSON says nothing to whoever fills in a number
    assert "spend" not in {field.name for field in fields_of(SCHEMA, SubLinear(1, 1e-6, 10))}


def test_the_parameters_come_back_as_their_kinds() -> None:
    """Texts become lists, numbers and a spend in the budget's own currency; empty ones keep their default."""
    sent = Fields(
        [
            ("p-columns", "SELECT 1\nFROM x\r\n\r\nSELECT 2"),
            ("p-kind", "b"),
            ("p-rounds", "3"),
            ("p-rate", ""),
            ("p-exact", "yes"),
            ("p-spend", "0.2"),
            ("p-weights", ""),
            ("p-together", ""),
        ]
    )
    shown = fields_of(SCHEMA, Epsilon(1))
    assert schema_parameters(shown, sent, Epsilon(1)) == {
        "columns": ["SELECT 1\nFROM x", "SELECT 2"], "kind": "b", "rounds": 3, "exact": True, "spend": {"epsilon": 0.2},
    }  # fmt: skip
    assert schema_parameters(shown, sent, Rho(1))["spend"] == {"rho": 0.2}
    more = {"p-weights": "3, 1.5,1", "p-together": "no"}
    told = schema_parameters(
        shown, Fields([*((k, v) for k, v in sent.multi_items() if k not in more), *more.items()]), Rho(1)
    )
    assert (told["weights"], told["together"]) == ([3.0, 1.5, 1.0], False)


NO_NUMBER = [("p-rounds", "x"), ("p-weights", "x"), ("p-weights", "1,nan"), ("p-weights", "inf"), ("p-rate", "nan")]
WRONG = [[("p-columns", "a"), ("p-kind", "a"), ("p-spend", "1"), wrong] for wrong in NO_NUMBER]


@pytest.mark.parametrize("sent", [[], *WRONG])
def test_what_is_missing_or_no_number_is_refused(sent: list[tuple[str, str]]) -> None:
    """A field that must be there, and a number that is none or that JSON does not have, are said."""
    with pytest.raises(Refusal):
        schema_parameters(fields_of(SCHEMA, Epsilon(1)), Fields(sent), Epsilon(1))
