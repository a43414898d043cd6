"""Pages from templates: everything that is not a template's own text is escaped, and a missing name is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sulq.service.console.views import chart, words
from sulq.version import __version__

TEMPLATES: Final = Path(__file__).parent / "templates"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,  # whatever a file is called: nothing a person typed is ever markup (T82)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = ("number", "price", "odds", "whom", "kind", "bounds", "moment", "small")
    made.filters.update({name: getattr(words, name) for name in named})
    made.globals.update({"gauge": chart.gauge, "version": __version__})
    return made


_PAGES: Final = _environment()


def page(template: str, **values: object) -> str:
    """A page, or a piece of one."""
    return _PAGES.get_template(template).render(**values)
