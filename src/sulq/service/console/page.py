"""Pages from templates, and the console's own files: a fixed list, each under a name that changes with its content.

Everything that is not a template's own text is escaped, and a missing name is an error.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from sulq.service.console.views import chart, words
from sulq.version import __version__

FOLDER: Final = Path(__file__).parent / "static"
KINDS: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
    "vendor/htmx-2.0.11.min.js": "text/javascript; charset=utf-8",
}
_BODIES: Final = {name: (FOLDER / name).read_bytes() for name in KINDS}
_TAGS: Final = {name: hashlib.sha256(body).hexdigest()[:16] for name, body in _BODIES.items()}
TEMPLATES: Final = Path(__file__).parent / "templates"


def address(name: str) -> str:
    """Where a file is found; a new content has a new address, so a browser may keep the old one for ever."""
    return f"/static/{name}?{_TAGS[name]}"


async def serve(request: Request) -> Response:
    """One of the files, or nothing: no path is ever made from what was asked for."""
    name = request.path_params["name"]
    if name not in KINDS:
        return Response(status_code=404)
    return Response(
        _BODIES[name], media_type=KINDS[name], headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


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
