"""A picture of a plan with the diffs that climb it (id_based_ivm, figure 5), as SVG.

Operators are boxes with their IDs in an oval; what is kept has a double border; tables are
cylinders. An arrow says which diffs go up: inserts, deletes, updates. Where none goes it is grey.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten, wrap
from xml.sax.saxutils import escape

from viewkeep.diffs.generate import GeneratedScript
from viewkeep.diffs.model import DELETE, INSERT, SIGNS, UPDATE
from viewkeep.diffs.passes.instantiate import BLOCKING
from viewkeep.diffs.show.names import column_text
from viewkeep.diffs.show.operators import details
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.traversal import inputs_of
from viewkeep.report.script.id_plan import kept_nodes

WIDTH, HEIGHT = 236, 78
"""The size of a box."""

ACROSS, UP, MARGIN = 24, 58, 16
"""The room between boxes, and around all."""

LETTERS, LINES = 36, 2
"""How much of a condition stands in a box; the rest is shown when one points at it."""

FLOW, STILL, INK, KEPT, PAPER = "#1f6f8b", "#b8b8b8", "#222222", "#2e7d32", "#ffffff"

STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222222}"
    ".head{font-weight:bold}.small{font-size:11px}.flow{fill:#1f6f8b;font-weight:bold}"
    ".flow{paint-order:stroke;stroke:#ffffff;stroke-width:4px}.kept{fill:#2e7d32}"
)


@dataclass(frozen=True)
class Place:
    """Where a box stands: its upper left corner."""

    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + WIDTH / 2


def plan_picture(generated: GeneratedScript, name: str) -> str:
    """The SVG text; the same plan always gives the same picture."""
    places = _picture_places(generated.plan.root)
    width = max(place.x for place in places.values()) + WIDTH + MARGIN
    height = max(place.y for place in places.values()) + HEIGHT + MARGIN
    body = [
        *_input_arrows(generated, places),
        *_operator_boxes(generated, places),
        *_view_shapes(generated, name),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}">',
            f"<title>{_xml_text(f'Plan of {name}')}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{FLOW}"/>'
            "</marker></defs>",
            *body,
            "</svg>\n",
        ]
    )


# --- places ---------------------------------------------------------------------------------------


def _picture_places(root: Node) -> dict[Node, Place]:
    """Inputs below the operators that use them; an operator stands over the middle of them."""
    depths: dict[Node, int] = {}
    _picture_depths(root, 1, depths)
    middles: dict[Node, float] = {}
    _picture_middles(root, middles)
    step = HEIGHT + UP
    return {
        node: Place(MARGIN + column * (WIDTH + ACROSS), MARGIN + (depths[node] - 1) * step + UP)
        for node, column in middles.items()
    }


def _picture_depths(node: Node, depth: int, depths: dict[Node, int]) -> None:
    if depths.get(node, 0) < depth:
        depths[node] = depth
        for child in inputs_of(node):
            _picture_depths(child, depth + 1, depths)


def _picture_middles(node: Node, middles: dict[Node, float]) -> None:
    """Leaves from left to right, each in a column of its own; a shared input stands once."""
    new = [child for child in dict.fromkeys(inputs_of(node)) if child not in middles]
    for child in new:
        _picture_middles(child, middles)
    below = [middles[child] for child in new]
    leaves = [column for column in middles.values() if column == int(column)]
    free = max((int(column) + 1 for column in leaves), default=0)
    middles[node] = sum(below) / len(below) if below else float(free)


# --- arrows ---------------------------------------------------------------------------------------


def diff_kinds(generated: GeneratedScript, node: Node) -> str:
    """The diffs of an operator's output: their kinds, and how many there are of each."""
    changes = generated.dag.changes(generated.plan.nodes.index(node))
    kinds = [change.schema.kind for change in changes]
    counted = [(kind, kinds.count(kind)) for kind in (INSERT, DELETE, UPDATE) if kind in kinds]
    return "  ".join(
        f"Δ{SIGNS[kind]}" + (f" x{count}" if count > 1 else "") for kind, count in counted
    )


def _input_arrows(generated: GeneratedScript, places: Mapping[Node, Place]) -> Iterator[str]:
    for node in generated.plan.nodes:
        inputs = dict.fromkeys(inputs_of(node))
        for i, child in enumerate(inputs):
            start, end = places[child], places[node]
            x = end.x + WIDTH * (i + 1) / (len(inputs) + 1)
            yield from _arrow_shapes(
                start.middle, start.y, x, end.y + HEIGHT, diff_kinds(generated, child)
            )
    root = places[generated.plan.root]
    kinds = diff_kinds(generated, generated.plan.root)
    yield from _arrow_shapes(root.middle, root.y, root.middle, root.y - UP + 22, kinds)


def _arrow_shapes(x: float, y: float, to_x: float, to_y: float, kinds: str) -> Iterator[str]:
    style = f'stroke="{FLOW}" stroke-width="2" marker-end="url(#tip)"'
    if not kinds:
        style = f'stroke="{STILL}" stroke-width="1.5"'
    yield f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" {style}/>'
    if kinds:
        yield _text_element((x + to_x) / 2 + 8, (y + to_y) / 2 + 4, kinds, "small flow")


def _view_shapes(generated: GeneratedScript, name: str) -> Iterator[str]:
    """The view, above its root."""
    root = _picture_places(generated.plan.root)[generated.plan.root]
    label = shorten(name, LETTERS, placeholder="...")
    yield _text_element(root.middle, root.y - UP + 16, label, "head kept", "middle")


# --- boxes ----------------------------------------------------------------------------------------


def _operator_boxes(generated: GeneratedScript, places: Mapping[Node, Place]) -> Iterator[str]:
    caches = kept_nodes(generated)
    for number, node in enumerate(generated.plan.nodes):
        place = places[node]
        yield "<g>"
        yield f"<title>{_xml_text(f'{type(node).__name__} {details(node)}'.rstrip())}</title>"
        yield from _operator_shape(node, place, node in caches)
        yield from _operator_texts(node, number, place)
        yield from _ids_oval([column_text(name) for name in generated.plan.ids[node]], place)
        if node in caches:
            label = f"kept: {caches[node].name}"
            yield _text_element(place.x + 10, place.y + HEIGHT - 10, label, "small kept")
        yield "</g>"


def _operator_shape(node: Node, place: Place, is_kept: bool) -> Iterator[str]:
    x, y = place.x, place.y
    if isinstance(node, Scan):
        yield (
            f'<path d="M{x:g} {y + 8:g}v{HEIGHT - 16}a{WIDTH / 2:g} 8 0 0 0 {WIDTH} 0v{16 - HEIGHT}'
            f'a{WIDTH / 2:g} 8 0 0 0 {-WIDTH} 0a{WIDTH / 2:g} 8 0 0 0 {WIDTH} 0" '
            f'fill="#f3f3f3" stroke="{INK}"/>'
        )
        return
    for inset in (0, 4) if is_kept else (0,):
        yield (
            f'<rect x="{x + inset:g}" y="{y + inset:g}" width="{WIDTH - 2 * inset}" '
            f'height="{HEIGHT - 2 * inset}" rx="4" fill="{PAPER}" '
            f'stroke="{KEPT if is_kept else INK}"/>'
        )


def _operator_texts(node: Node, number: int, place: Place) -> Iterator[str]:
    title = f"{number} {type(node).__name__}"
    if isinstance(node, BLOCKING):
        title += " (blocking)"
    top = place.y + (28 if isinstance(node, Scan) else 20)
    yield _text_element(place.x + 10, top, title, "head")
    for i, line in enumerate(_picture_lines(details(node)), start=1):
        yield _text_element(place.x + 10, top + 15 * i, line, "small")


def _picture_lines(text: str) -> list[str]:
    """A long condition in a few lines, cut where it is longer."""
    lines = wrap(text, LETTERS)
    if len(lines) > LINES:
        rest = " ".join(lines[LINES - 1 :])
        lines = [*lines[: LINES - 1], rest[: LETTERS - 3].rstrip() + "..."]
    return lines


def _ids_oval(names: Sequence[str], place: Place) -> Iterator[str]:
    """The IDs in an oval on the upper right, as in the paper."""
    if not names:
        return
    label = ", ".join(names)
    label = label if len(label) <= 24 else label[:21].rstrip() + "..."
    width = 7 * len(label) + 16
    x, y = place.x + WIDTH - width + 8, place.y - 9
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width}" height="18" rx="9" fill="#e8e3f4" '
        'stroke="#7e6bb0"/>'
    )
    yield _text_element(x + width / 2, y + 13, label, "small", "middle")


def _text_element(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    place = f'x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{_xml_text(text)}</text>"


def _xml_text(text: str) -> str:
    """Text for XML, which knows no control characters."""
    return escape("".join(c if c.isprintable() else " " for c in text))
