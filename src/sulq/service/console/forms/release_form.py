"""A release's form, and the job's parameters from the form that comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from sulq.service.console.forms import form
from sulq.service.console.forms.field import chosen, mistake
from sulq.service.console.guard import Fields

WRITTEN: Final = (("parquet", "Parquet"), ("csv", "CSV"))


@dataclass(frozen=True, slots=True)
class Form(form.Form):
    """What a release's page asks for."""

    kinds: ClassVar[tuple[str, ...]] = ("release", "selection")
    noun: ClassVar[str] = "release"

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's parameters and how its files are written."""
        written = sent.text("written")
        if written and written not in dict(WRITTEN):
            raise mistake("There are no such files.", "Choose Parquet or CSV.")
        return chosen(self.fields, sent) | ({"written": written} if written else {})
