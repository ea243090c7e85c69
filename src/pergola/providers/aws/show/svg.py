"""The picture as SVG: boxes inside boxes, coloured by owner. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from pergola.providers.aws.show.things import Owner, Thing

FILLS: Final = {
    Owner.OURS: "#d3f9d8",
    Owner.USERS: "#e7f5ff",
    Owner.TAGGED: "#fff3bf",
    Owner.UNKNOWN: "#ffffff",
}
_BESIDE: Final = "zone"
"""Resources of this kind are placed side by side; all others below each other."""
_FONT: Final = 12
_CHARACTER: Final = 7.3
"""The width of a character of the font, in its units."""
_LINE: Final = 18
_GAP: Final = 8
_LEGEND: Final = 30


@dataclass(frozen=True, slots=True)
class _Box:
    """A resource with its place inside the one that contains it."""

    thing: Thing
    x: float
    y: float
    width: float
    height: float
    boxes: tuple["_Box", ...] = ()


def svg(root: Thing) -> str:
    """Return a complete SVG document; ids remain text, so that they can be searched and copied."""
    box = _laid_out(root, _GAP, _GAP + _LEGEND)
    width, height = box.width + 2 * _GAP, box.height + _LEGEND + 2 * _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="monospace" font-size="{_FONT}">\n'
        f"<title>{escape(root.title)}</title>\n"
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>\n'
        f"{''.join(_legend())}{''.join(_drawn(box))}</svg>\n"
    )


def _laid_out(thing: Thing, x: float, y: float) -> _Box:
    """Lay out a resource, as wide as its text and its parts need."""
    boxes: list[_Box] = []
    right, below = _GAP + len(thing.title) * _CHARACTER, y + _LINE + _GAP
    row: list[_Box] = []
    for part in thing.parts:
        if row and part.kind == _BESIDE:
            box = _laid_out(part, row[-1].x + row[-1].width + _GAP, row[-1].y)
        else:
            box = _laid_out(part, x + _GAP, below)
        row = [*row, box] if part.kind == _BESIDE else []
        boxes.append(box)
        below = max(below, box.y + box.height + _GAP)
        right = max(right, box.x + box.width - x)
    height = below - y if boxes else _LINE + _GAP
    return _Box(thing, x, y, right + _GAP, height, tuple(boxes))


def _drawn(box: _Box) -> Iterator[str]:
    thing = box.thing
    yield (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="4" '
        f'fill="{FILLS[thing.owner]}" stroke="#868e96"/>\n'
        f'<text x="{box.x + _GAP:g}" y="{box.y + _LINE - 2:g}">{escape(thing.title)}</text>\n'
    )
    for inner in box.boxes:
        yield from _drawn(inner)


def _legend() -> Iterator[str]:
    x: float = _GAP
    for owner, fill in FILLS.items():
        if not owner:
            continue
        yield (
            f'<rect x="{x:g}" y="{_GAP}" width="14" height="14" fill="{fill}" stroke="#868e96"/>\n'
            f'<text x="{x + 20:g}" y="{_GAP + 12}">{escape(str(owner))}</text>\n'
        )
        x += 40 + len(owner) * _CHARACTER
