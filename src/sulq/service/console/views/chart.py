"""Charts drawn on the server as SVG: estimates with their error bars, spending over time, gauges.

A drawing is plain markup, coloured by the style sheet's variables, so it follows
light and dark, prints, needs no script and no exception in the content policy. Each
one says in words what it shows, for those who do not see it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from sulq.display.axes import Timeline, number_ticks
from sulq.display.numbers import NumberStyle, plain
from sulq.service.console.views.words import number, signed

WIDE: Final = 620  # drawn for a desk
NARROW: Final = 330  # drawn again for a phone: shrinking the wide one would shrink its letters
MAX_BARS: Final = 40  # bars in one chart; the table has the rest
MAX_POINTS: Final = 1_000  # points of a line
MAX_DOTS: Final = 60  # of a line whose points are marked
MAX_BARS_READ_OUT: Final = 12  # bars read out
MIN_WIDE: Final = 500  # a narrower chart has fewer ticks
ROW: Final = 30
FOOT: Final = 28
LETTER: Final = 7.2  # the width of a letter of a label

_Place = Callable[[float], float]  # where a value is drawn
_Drawing = tuple[Markup, float, float]  # what is drawn, how wide, how high
_Draw = Callable[[float], _Drawing]
_CAMEL: Final = frozenset({"viewBox", "preserveAspectRatio"})


@dataclass(frozen=True, slots=True)
class Bar:
    """One estimate: from `low` to `high` with the chart's confidence; a missing end has no whisker.

    `label`: what names it, where that is a single date or number.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    label: object = None


def bars(given: Sequence[Bar], *, title: str, level: float = 0.95, number_of_rows: int = 0) -> Markup:
    """Estimates with error bars, side by side; drawn twice, for a desk and for a phone.

    `number_of_rows`: how many there are, where not all were given.
    """
    shown = [bar for bar in given if math.isfinite(bar.value)][:MAX_BARS]
    if not shown:
        return Markup()
    words = _words(shown, max(len(given), number_of_rows), level, "Each line marks")
    return _both(lambda width: _bars(shown, width), title, words)


def lines(given: Sequence[Bar], over: Timeline, *, title: str, level: float = 0.95, number_of_rows: int = 0) -> Markup:
    """Estimates over time as a line, in a band of their intervals; `over` says where each lies."""
    pairs = zip(given, over.places, strict=True)
    placed = [(place, bar) for bar, place in pairs if place is not None and math.isfinite(bar.value)]
    if not placed:
        return Markup()
    words = _words([bar for _, bar in placed], max(len(given), number_of_rows), level, "The band marks")
    return _both(lambda width: _over_time(placed, over, width), title, words)


def _words(shown: Sequence[Bar], number_of_rows: int, level: float, marks: str) -> str:
    """What a chart shows, for those who do not see it."""
    style = _style(shown)
    told = "; ".join(_told(bar, style) for bar in shown[:MAX_BARS_READ_OUT])
    rest = number_of_rows - MAX_BARS_READ_OUT
    more = f"; and {rest} more" if rest > 0 else ""  # of which a page may show some alone
    sure = any(bar.low is not None for bar in shown)
    lead = f"{marks} where the true value lies with {level:.0%} confidence. " if sure else ""
    return f"{lead}{told}{more}."


def points(given: Sequence[tuple[str, float, float]], *, title: str, x: str, y: str) -> Markup:
    """Named points by two of their numbers."""
    shown = [point for point in given if all(map(math.isfinite, point[1:]))][:MAX_BARS]
    if not shown:
        return Markup()
    told = "; ".join(f"{name}: {x} {number(a)}, {y} {number(b)}" for name, a, b in shown[:MAX_BARS_READ_OUT])
    more = f"; and {len(given) - MAX_BARS_READ_OUT} more, all in the table" if len(given) > MAX_BARS_READ_OUT else ""
    return _both(lambda width: _points(shown, width, x, y), title, f"{told}{more}.")


def spending(points: Sequence[tuple[datetime.datetime, float]], *, title: str) -> Markup:
    """What part of a budget was spent up to each moment, under the line of the whole."""
    if not points:
        return Markup()
    words = (
        f"From {points[0][0]:%Y-%m-%d} to {points[-1][0]:%Y-%m-%d} {len(points)} asks spent "
        f"{points[-1][1]:.0%} of the budget."
    )
    return _both(lambda width: _steps(points, width), title, words)


def gauge(left: float, words: str, reserve: float = 0.0) -> Markup:
    """How much of a budget is left, as a strip; `reserve` marks what is kept for its holder."""
    part = min(max(left, 0.0), 1.0)
    state = "low" if part < 0.1 else "some" if part < 0.35 else "plenty"
    mark = _tag("rect", "", class_="reserve", x=0, y=0, width=_n(100 * min(reserve, 1.0)), height=8) if reserve else ""
    strip = _tag("rect", "", class_=f"level {state}", x=0, y=0, width=_n(100 * part), height=8)
    body = _tag("title", escape(words)) + strip + mark
    return _tag(
        "svg", body, class_="gauge", viewBox="0 0 100 8", preserveAspectRatio="none", role="img", aria_label=words
    )


def _both(draw: _Draw, title: str, words: str) -> Markup:
    return _svg(draw(WIDE), title, words, "chart wide") + _svg(draw(NARROW), title, words, "chart narrow")


def _svg(drawing: _Drawing, title: str, words: str, kind: str) -> Markup:
    body, width, height = drawing
    head = _tag("title", escape(title)) + _tag("desc", escape(words))
    label = f"{title}. {words}"
    return _tag("svg", head + body, class_=kind, viewBox=f"0 0 {_n(width)} {_n(height)}", role="img", aria_label=label)


def _bars(shown: Sequence[Bar], width: float) -> _Drawing:
    room = width * (0.34 if width < MIN_WIDE else 0.28)
    letters = max(min(int(room / LETTER), max(len(bar.name) for bar in shown)), 4)
    left = min(letters * LETTER + 14, room + 14)
    right = width - 22
    low, high, from_zero = _span(shown)
    ticks = number_ticks(low, high, 4 if width < MIN_WIDE else 6)
    high = max(high, ticks[-1])
    ticks = [tick for tick in ticks if tick >= low]  # an interval that reaches a little below zero needs no tick there
    height = len(shown) * ROW + FOOT + 6

    def x(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * (right - left)

    parts, style = [_grid(ticks, x, 4, len(shown) * ROW + 6)], _style(shown)
    for i, bar in enumerate(shown):
        y = 6 + i * ROW + ROW / 2
        name = bar.name if len(bar.name) <= letters else bar.name[: letters - 1] + "…"
        drawn = [
            _tag("title", escape(_told(bar, style))),
            _tag("text", escape(name), class_="name", x=_n(left - 8), y=_n(y + 4), text_anchor="end"),
        ]
        if from_zero:
            start, end = sorted((x(0.0), x(bar.value)))
            strip = {"x": _n(start), "y": _n(y - 8), "width": _n(max(end - start, 0.5)), "height": 16, "rx": 2}
            drawn.append(_tag("rect", "", class_="bar", **strip))
        drawn += _whisker(bar, x, y)
        if not from_zero:
            drawn.append(_tag("circle", "", class_="dot", cx=_n(x(bar.value)), cy=_n(y), r=4.5))
        parts.append(_tag("g", _join(drawn)))
    return _join(parts), width, height


def _points(shown: Sequence[tuple[str, float, float]], width: float, across: str, up: str) -> _Drawing:
    left, right, top, base = 64.0, width - 22, 26.0, 236.0
    columns = number_ticks(*_room([a for _, a, _ in shown]), 4)
    lines = number_ticks(*_room([b for _, _, b in shown]), 4)

    def x(value: float) -> float:
        return left + (value - columns[0]) / (columns[-1] - columns[0]) * (right - left)

    def y(value: float) -> float:
        return base - (value - lines[0]) / (lines[-1] - lines[0]) * (base - top)

    parts = [_grid(columns, x, top, base)]
    for tick in lines:
        parts.append(_line(left, y(tick), right, y(tick), "rule"))
        parts.append(_tag("text", _short(tick), class_="tick", x=_n(left - 8), y=_n(y(tick) + 4), text_anchor="end"))
    parts.append(_tag("text", f"{up[:30]} ↑", class_="tick", x=4, y=14))
    parts.append(_tag("text", f"{across[:30]} →", class_="tick", x=_n(right), y=_n(base + 38), text_anchor="end"))
    for name, a, b in shown:
        dot = _tag("circle", "", class_="dot", cx=_n(x(a)), cy=_n(y(b)), r=5)
        end = x(a) > right - 60
        at = {"x": _n(x(a) + (-9 if end else 9)), "y": _n(y(b) + 4), "text_anchor": "end" if end else "start"}
        said = _tag("title", escape(f"{name}: {across} {number(a)}, {up} {number(b)}"))
        parts.append(_tag("g", _join([said, dot, _tag("text", escape(name[:12]), class_="name", **at)])))
    return _join(parts), width, base + FOOT + 16


def _over_time(placed: Sequence[tuple[float, Bar]], over: Timeline, width: float) -> _Drawing:
    left, right, top, base = 64.0, width - 22, 14.0, 236.0
    first, last = min(place for place, _ in placed), max(place for place, _ in placed)
    low, high, _ = _span([bar for _, bar in placed])
    rules = number_ticks(low, high, 4)

    def x(place: float) -> float:
        return left + (place - first) / ((last - first) or 1.0) * (right - left)

    def y(value: float) -> float:
        return base - (min(max(value, rules[0]), rules[-1]) - rules[0]) / (rules[-1] - rules[0]) * (base - top)

    parts = []
    for tick in rules:
        parts.append(_line(left, y(tick), right, y(tick), "axis" if tick == 0 else "rule"))
        parts.append(_tag("text", _short(tick), class_="tick", x=_n(left - 8), y=_n(y(tick) + 4), text_anchor="end"))
    for place, text in over.ticks(3 if width < MIN_WIDE else 6):
        parts.append(_line(x(place), base, x(place), base + 5, "rule"))
        parts.append(_tag("text", text, class_="tick", x=_n(x(place)), y=_n(base + 20), text_anchor="middle"))
    ends = [
        (place, bar.value if bar.low is None else bar.low, bar.value if bar.high is None else bar.high)
        for place, bar in placed
    ]
    band = [(x(place), y(low)) for place, low, _ in ends] + [(x(place), y(high)) for place, _, high in reversed(ends)]
    trace = [(x(place), y(bar.value)) for place, bar in placed]
    parts += [_tag("path", "", class_="area", d=f"{_path(band)} Z"), _tag("path", "", class_="trace", d=_path(trace))]
    style = _style([bar for _, bar in placed])
    for (across, up), (_, bar) in zip(trace, placed, strict=True) if len(trace) <= MAX_DOTS else ():
        parts.append(
            _tag("circle", _tag("title", escape(_told(bar, style))), class_="dot", cx=_n(across), cy=_n(up), r=3.5)
        )
    return _join(parts), width, base + FOOT


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _room(values: Sequence[float]) -> tuple[float, float]:
    """From where to where an axis runs, a little beyond its values; never of no length."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.08, 0.01 * max(abs(low), abs(high)), 1e-9)
    return low - room, high + room


def _whisker(bar: Bar, x: _Place, y: float) -> list[Markup]:
    if bar.low is None or bar.high is None:
        return []
    start, end = x(bar.low), x(bar.high)
    drawn = [_line(start, y, end, y, "whisker")]
    # An end that is not known has no cap: the line runs to the edge and stays open.
    drawn += [
        _line(place, y - 5, place, y + 5, "whisker")
        for place, value in ((start, bar.low), (end, bar.high))
        if math.isfinite(value)
    ]
    return drawn


def _span(shown: Sequence[Bar]) -> tuple[float, float, bool]:
    """From where to where the axis runs, and whether bars start at zero.

    A bar that does not start at zero misleads; where zero is far away, dots are drawn instead.
    """
    values = [bar.value for bar in shown]
    ends = [end for bar in shown for end in (bar.low, bar.high) if end is not None and math.isfinite(end)]
    low, high = min([*values, *ends]), max([*values, *ends])
    far = low > 0 and high - low < 0.35 * high
    if not far:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 1.0, high + 1.0
    return low, high, not far


def _steps(points: Sequence[tuple[datetime.datetime, float]], width: float) -> _Drawing:
    left, right, top, base = 52.0, width - 22, 18.0, 190.0
    first, last = points[0][0], points[-1][0]
    seconds = max((last - first).total_seconds(), 1.0) * 1.04  # the last step is drawn whole
    most = max(1.0, points[-1][1])

    def x(when: datetime.datetime) -> float:
        return left + (when - first).total_seconds() / seconds * (right - left)

    def y(value: float) -> float:
        return base - value / most * (base - top)

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line(left, y(tick), right, y(tick), "rule"))
        parts.append(_tag("text", f"{tick:.0%}", class_="tick", x=_n(left - 8), y=_n(y(tick) + 4), text_anchor="end"))
    path = [f"M{_n(left)} {_n(base)}"]
    height = base
    for when, value in points:
        path.append(f"L{_n(x(when))} {_n(height)}")
        height = y(value)
        path.append(f"L{_n(x(when))} {_n(height)}")
    path.append(f"L{_n(right)} {_n(height)}")
    area = " ".join([*path, f"L{_n(right)} {_n(base)} Z"])
    parts += [_tag("path", "", class_="area", d=area), _tag("path", "", class_="trace", d=" ".join(path))]
    parts.append(_line(left, y(1.0), right, y(1.0), "limit"))
    parts.append(_tag("text", "budget", class_="tick", x=_n(right), y=_n(y(1.0) - 5), text_anchor="end"))
    same = first.date() == last.date()
    form = "%H:%M" if same else "%Y-%m-%d"
    parts.append(_tag("text", f"{first:{form}}", class_="tick", x=_n(left), y=_n(base + 20)))
    parts.append(_tag("text", f"{last:{form}}", class_="tick", x=_n(right), y=_n(base + 20), text_anchor="end"))
    return _join(parts), width, base + FOOT


def _grid(ticks: Sequence[float], x: _Place, top: float, base: float) -> Markup:
    parts = []
    for tick in ticks:
        kind = "axis" if tick == 0 else "rule"
        parts.append(_line(x(tick), top, x(tick), base, kind))
        parts.append(_tag("text", _short(tick), class_="tick", x=_n(x(tick)), y=_n(base + 18), text_anchor="middle"))
    return _join(parts)


def _short(value: float) -> str:
    for size, letter in ((1e9, "bn"), (1e6, "m"), (1e4, "k")):
        if abs(value) >= size:
            scale = 1e3 if letter == "k" else size
            return f"{value / scale:g}{letter}".replace("-", "−")
    return signed(plain(value))


def _style(shown: Iterable[Bar]) -> NumberStyle:
    return NumberStyle.of([(bar.value, bar.low, bar.high) for bar in shown if bar.low is not None])


def _told(bar: Bar, style: NumberStyle) -> str:
    if bar.low is None or bar.high is None:
        return f"{bar.name}: {number(bar.value)}"
    estimate = bar.value, bar.low, bar.high
    low, high = map(signed, style.ends(estimate))
    return f"{bar.name}: {signed(style.value(estimate))}, between {low} and {high}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return _tag("line", "", class_=kind, x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2))


def _tag(name: str, body: str, **attributes: object) -> Markup:
    """An element; its attributes are escaped, its body must be markup or is escaped."""
    said = "".join(
        f' {key if key in _CAMEL else key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{said}>{escape(body)}</{name}>")  # noqa: S704 - every part is escaped above


def _join(parts: Iterable[Markup]) -> Markup:
    return Markup().join(parts)


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
