"""Draws the picture of every strategy in docs/plots/strategies/, from the values that run.

For the triangle count, maps of the trigger program are boxes (those with a blue border change when
a tuple of R is inserted), and arrows lead to each of them from the maps that are looked up for it,
or that are iterated over (dashed). Views over tables have the plans that `viewkeep explain` draws.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import viewkeep as vk
from viewkeep.diffs.generate import generate
from viewkeep.plan.program import Collect, Join, Map, Program, Trigger, Union, Update
from viewkeep.query.tables import Table
from viewkeep.report.script.picture import plan_picture
from viewkeep.sql import parse_view

FOLDER = Path(__file__).resolve().parent / "plots" / "strategies"
TRIANGLES = "Q() = R(a, b) * S(b, c) * T(c, a)"
PROGRAMS = ("recompute", "delta", "recursive", "viewtree", "epsilon")
TABLES = {
    "parts": Table({"pid": "int", "price": "int"}, key=["pid"]),
    "uses": Table({"did": "int", "pid": "int"}, key=["did", "pid"]),
}
JOIN = "SELECT u.did, u.pid, p.price FROM uses u JOIN parts p ON p.pid = u.pid"
FIRST = "SELECT did, pid, row_number() OVER (PARTITION BY did ORDER BY pid) AS place FROM uses"
PRICES = {"parts": [("update", frozenset({"price"}))]}

WIDTH, HEIGHT, ACROSS, UP, MARGIN = 140, 40, 28, 74, 18
STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
    ".name{font-weight:bold}.small{font-size:11px;fill:#666}.how{font-size:11px;fill:#1f6f8b}"
    ".how{paint-order:stroke;stroke:#fff;stroke-width:4px}"
    "rect{fill:#fff;stroke:#999}.new{stroke:#1f6f8b;stroke-width:2.5}.delta{fill:#e4f1f6}"
    "path{fill:none;stroke:#1f6f8b;stroke-width:1.6}.read{stroke:#999;stroke-dasharray:4 3}"
    ".made{stroke:#ccc}"
)


@dataclass
class Change:
    """What one statement of a trigger does: the map that changes, those that are read for it, and
    the variables that it has to iterate over."""

    target: str
    reads: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)


def pictures() -> Iterator[tuple[str, str]]:
    """The name of each picture, and its text."""
    for strategy in PROGRAMS:
        live = vk.maintain(TRIANGLES, strategy=strategy, engine="reference")
        yield strategy, program_picture(live.program)
    yield "id", plan_picture(generate(parse_view(JOIN, TABLES), PRICES), "prices")
    whole = generate(parse_view(JOIN, TABLES), tuple_based=True)
    yield "tuple", plan_picture(whole, "prices")
    yield "affected_keys", plan_picture(generate(parse_view(FIRST, TABLES)), "places")


def program_picture(program: Program) -> str:
    """The maps of a program, and what an insert into its first relation does, as SVG."""
    trigger = program.triggers[0]
    changes = {each.target: each for each in _changes(trigger)}
    shown = [each for each in program.maps if _is_shown(each)]
    if not any(each.name == "Result" or not each.key for each in shown):
        shown.append(Map("Result", (), "when it is read", frozenset({0, 1, 2})))
        changes["Result"] = Change("Result", [m.name for m in shown[:-1]], ["a", "b", "c"])
    places = _places(shown)
    width = max(x for x, _ in places.values()) + WIDTH + MARGIN
    height = max(y for _, y in places.values()) + HEIGHT + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}">',
            f"<title>Maps of the triangle count: {program.strategy}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{width:g}" height="{height:g}" style="stroke:none"/>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#1f6f8b"/>'
            "</marker></defs>",
            *_made_of(shown, changes, places),
            *_arrows(changes, places, trigger),
            *(text for each in shown for text in _box(each, places[each.name], changes, trigger)),
            "</svg>\n",
        ]
    )


def _is_shown(each: Map) -> bool:
    """Counts of values alone are left out."""
    return "^" not in each.name


def _changes(trigger: Trigger) -> Iterator[Change]:
    """The changes of a trigger, in its order; several of one map are told as one."""
    found: dict[str, Change] = {}
    collected: dict[str, Change] = {}
    for block in trigger.blocks:
        start = collected.get(block.source, Change(""))
        reads, loops = list(start.reads), list(start.loops)
        for step in block.steps:
            match step:
                case Join():
                    reads += [access.map for access in step.accesses]
                    loops += step.opens
                case Update():
                    change = found.setdefault(step.target, Change(step.target))
                    change.reads += [each for each in reads if each not in change.reads]
                    change.loops += [each for each in loops if each not in change.loops]
                case Collect():
                    collected[step.local] = Change(step.local, list(reads), list(loops))
                case Union():
                    raise NotImplementedError("unions are not drawn")
    yield from found.values()


def _places(maps: list[Map]) -> dict[str, tuple[float, float]]:
    """Inputs at the bottom, maps of more atoms and fewer variables above them."""
    levels = sorted({_level(each) for each in maps})
    rows = [[each for each in maps if _level(each) == level] for level in levels]
    widest = max(map(len, rows))
    places = {}
    for number, row in enumerate(rows):
        left = MARGIN + (widest - len(row)) * (WIDTH + ACROSS) / 2
        for column, each in enumerate(row):
            y = MARGIN + (len(rows) - 1 - number) * (HEIGHT + UP)
            places[each.name] = (left + column * (WIDTH + ACROSS), y)
    return places


def _level(each: Map) -> tuple[int, int]:
    if each.definition == "input":
        return (0, 0)
    return (1, -len(each.key)) if each.key else (2, 0)


def _box(
    each: Map, place: tuple[float, float], changes: Mapping[str, Change], trigger: Trigger
) -> Iterator[str]:
    x, y = place
    is_delta = each.name == _source(trigger)
    kind = "new delta" if is_delta else "new" if each.name in changes else ""
    yield f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
    title = f"{each.name}({', '.join(each.key)})"
    yield f'<text class="name" x="{x + 9:g}" y="{y + 17:g}">{escape(title)}</text>'
    about = "a tuple is inserted" if is_delta else _definition(each)
    yield f'<text class="small" x="{x + 9:g}" y="{y + 32:g}">{escape(about)}</text>'


def _definition(each: Map) -> str:
    if each.definition == "input":
        return "heavy part" if "_h" in each.name else "light part" if "_l" in each.name else "table"
    return "the count" if not each.key else re.sub(r"\([^)]*\)", "", each.definition)


def _source(trigger: Trigger) -> str:
    """The map that holds the relation of a trigger, or the part of it."""
    steps = [step for block in trigger.blocks for step in block.steps]
    targets = [step.target for step in steps if isinstance(step, Update)]
    return next(each for each in targets if each.split("_")[0] == trigger.relation)


def _made_of(
    maps: list[Map], changes: Mapping[str, Change], places: Mapping[str, tuple[float, float]]
) -> Iterator[str]:
    """What the maps that do not change are made of."""
    for each in maps:
        if each.name not in changes and each.definition != "input":
            x, y = places[each.name]
            for name in re.findall(r"(\w+)\(", each.definition):
                yield _arrow(places[name], (x + WIDTH / 2, y + HEIGHT), "made")


def _arrows(
    changes: Mapping[str, Change], places: Mapping[str, tuple[float, float]], trigger: Trigger
) -> Iterator[str]:
    source = _source(trigger)
    for change in changes.values():
        if change.target == source or change.target not in places:
            continue
        x, y = places[change.target]
        end = (x + WIDTH / 2, y + HEIGHT)
        for read in dict.fromkeys(each for each in change.reads if each in places):
            if read != source and places[read][1] > y:
                yield _arrow(places[read], end, "read")
        yield _arrow(places[source], end, "")
        loops = ", ".join(change.loops)
        how = f"for all {loops}" if loops else "one look-up" if change.reads else "at once"
        yield f'<text class="how" x="{end[0] + 8:g}" y="{end[1] + 16:g}">{how}</text>'


def _arrow(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    x, y = start[0] + WIDTH / 2, start[1]
    middle = (y + end[1]) / 2
    way = f"M{x:g} {y:g}C{x:g} {middle:g} {end[0]:g} {middle:g} {end[0]:g} {end[1]:g}"
    tip = "" if kind else ' marker-end="url(#tip)"'
    return f'<path class="{kind}" d="{way}"{tip}/>'


def main() -> None:
    """Write the pictures again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pictures():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
