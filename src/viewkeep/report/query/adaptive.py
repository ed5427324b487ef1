"""Heavy and light parts as the program that runs has them: splits, views, deltas, rebalancing.

The page follows figures 2 and 3 of triangle_ivm_epsilon: the materialized views with their sizes,
then the deltas of one relation with their costs. Programs of many parts are shown as a digest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from viewkeep.analysis import Analysis
from viewkeep.analysis.exponents import HALF, Exponent, order, value_at
from viewkeep.errors import QueryError
from viewkeep.plan.choose import plan
from viewkeep.plan.payload import plan_payload
from viewkeep.plan.program import INPUT, Map, Program, Split
from viewkeep.plan.show import atom_names, exponent_text
from viewkeep.report.cost_column import CostColumn
from viewkeep.report.query.deltas import Delta, deltas_of
from viewkeep.report.style import section

MOST_LINES = 12
"""More views, or deltas of one relation, than these are shown as a digest."""

LEVELS = {"h": "heavy", "m": "medium", "l": "light"}

REBALANCING = (
    "A value moves to another part when it has 3/2 of the tuples of the threshold or falls below "
    "1/2 of them; when the database outgrows N or falls below N/4, N doubles or halves and all is "
    "split anew. The updates in between pay for both."
)
"""How parts are kept in balance (engine/interpreter/partitions.py)."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Adaptive:
    """A program with heavy and light parts, and the query it is for."""

    program: Program
    analysis: Analysis

    @property
    def views(self) -> list[Map]:
        """What is kept besides the relations."""
        return [each for each in self.program.maps if each.definition != INPUT]

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """What updates change, relation by relation."""
        return deltas_of(self.program, self.analysis.query.name)

    def signature(self, view: Map) -> str:
        """A view and its key; the result is called as the query is."""
        is_result = view.name == self.program.listed
        name = self.analysis.query.name if is_result else view.name
        return f"{name}({', '.join(view.key)})"


def adaptive_program(analysis: Analysis) -> Adaptive | None:
    """The program that `maintain()` would run, if it has heavy and light parts."""
    if analysis.strategy != "epsilon":
        return None
    try:
        subtractable = plan_payload(analysis.query).ring.subtractable
        program = plan(analysis.query, subtractable=subtractable)
    except QueryError:  # it has bounds, but its values or conditions cannot be maintained
        return None
    return Adaptive(program, analysis) if program.splits else None


# --- for people -----------------------------------------------------------------------------------


def adaptive_sections(analysis: Analysis) -> Iterator[RenderableType]:
    """The parts, the views and the deltas of a query that is maintained adaptively."""
    adaptive = adaptive_program(analysis)
    if adaptive is None:
        return
    splits = [Text(f"{describe(adaptive.program, each)}.") for each in adaptive.program.splits]
    yield section("Heavy and light parts", *splits, *_epsilon_line(adaptive), Text(REBALANCING))
    yield section("Materialized views", _views_table(adaptive))
    yield section("Deltas of one update", *_delta_lines(adaptive))


def _epsilon_line(adaptive: Adaptive) -> Iterator[Text]:
    """The epsilon that `maintain()` runs; none where the plan needs other thresholds."""
    thresholds = {split.thresholds for split in adaptive.program.splits}
    if adaptive.analysis.bounds.best_epsilon is not None and len(thresholds) == 1:
        ((threshold, *_),) = thresholds
        yield Text(f"eps = {exponent_text(threshold)} is run unless another one is given.")


def describe(program: Program, split: Split) -> str:
    """What is split on what, and from how many tuples on a value is heavy.

    For example `R is split on a: heavy from N^eps tuples with the same a`.
    """
    relations, variables = relations_of(program, split), ", ".join(split.variables)
    levels = ", ".join(
        f"{LEVELS[split.letter(level + 1)]} from N^{power}"
        for level, power in enumerate(powers(split))
    )
    verb, place = ("is", "") if len(relations) == 1 else ("are", " in one of them")
    names = _names_in_sentence(relations)
    return f"{names} {verb} split on {variables}: {levels} tuples with the same {variables}{place}"


def relations_of(program: Program, split: Split) -> list[str]:
    """The relations that a split tells parts of, by the names of their maps."""
    names = atom_names(program)
    return [names[atom] for atom in split.atoms]


def powers(split: Split) -> list[str]:
    """The exponents of the thresholds: eps, or those that the plan needs."""
    if not split.fixed and len(split.thresholds) == 1:
        return ["eps"]
    return [exponent_text(threshold) for threshold in split.thresholds]


def _names_in_sentence(names: Sequence[str]) -> str:
    """Names in a sentence: `R, S and T`."""
    first, last = names[:-1], names[-1]
    return f"{', '.join(first)} and {last}" if first else last


def _views_table(adaptive: Adaptive) -> CostColumn:
    return _cost_lines(
        [(_view_definition(adaptive, each), each.size) for each in adaptive.views], "view"
    )


def _view_definition(adaptive: Adaptive, view: Map) -> str:
    return f"{adaptive.signature(view)} = {view.definition}"


def _delta_lines(adaptive: Adaptive) -> Iterator[RenderableType]:
    """The deltas of the first relation of each kind; others like it are only named."""
    for (first, lines), *others in _relations_by_kind(adaptive.deltas):
        names = [name for name, _ in others]
        names_alike = f" ({_names_in_sentence(names)}: as many, at the same costs)" if names else ""
        yield Text(f"Update of {first}{names_alike}")
        yield _cost_lines([(str(line), line.cost) for line in lines], "delta")
    average = ", amortized" if adaptive.analysis.bounds.amortized else ""
    yield Text(f"In all {adaptive.analysis.bounds.order('update')} for one update{average}.")


Lines = Sequence[tuple[str, Exponent | None]]


def _relations_by_kind(deltas: Iterable[Delta]) -> list[list[tuple[str, list[Delta]]]]:
    """Relations with equally many deltas of every cost are of one kind: mostly by symmetry."""
    kinds: dict[frozenset[tuple[str, int]], list[tuple[str, list[Delta]]]] = {}
    for _, group in groupby(deltas, key=lambda delta: delta.atom):
        lines = list(group)
        costs = Counter(_exponent_text(line.cost) for line in lines)
        kinds.setdefault(frozenset(costs.items()), []).append((lines[0].relation, lines))
    return list(kinds.values())


def _cost_lines(lines: Lines, thing: str) -> CostColumn:
    if len(lines) > MOST_LINES:
        return CostColumn(list(_cost_digest(lines, thing)))
    return CostColumn([(line, _exponent_text(exponent)) for line, exponent in lines])


def _cost_digest(lines: Lines, thing: str) -> Iterator[tuple[str, str]]:
    """How many there are of each cost, the dearest first, each with an example."""
    by_cost: dict[str, list[tuple[str, Exponent | None]]] = {}
    for line, exponent in lines:
        by_cost.setdefault(_exponent_text(exponent), []).append((line, exponent))
    for cost, lines_of_cost in sorted(
        by_cost.items(), key=lambda item: -_exponent_value(item[1][0][1])
    ):
        example = min((line for line, _ in lines_of_cost), key=len)
        number = f"{len(lines_of_cost)} {thing}s, such as" if lines_of_cost[1:] else f"1 {thing},"
        yield f"{number} {example}", cost


def _exponent_text(exponent: Exponent | None) -> str:
    return "" if exponent is None else order(exponent)


def _exponent_value(exponent: Exponent | None) -> float:
    return 0.0 if exponent is None else float(value_at(exponent, HALF))


# --- for programs ---------------------------------------------------------------------------------


def adaptive_json(analysis: Analysis) -> Json | None:
    """The same for programs, without a digest; null where nothing is split."""
    adaptive = adaptive_program(analysis)
    if adaptive is None:
        return None
    return {
        "splits": [_split_json(adaptive.program, each) for each in adaptive.program.splits],
        "views": [
            {
                "view": adaptive.signature(each),
                "definition": each.definition,
                "size": _cost_exponent_json(each.size),
            }
            for each in adaptive.views
        ],
        "deltas": [
            {
                "relation": each.relation,
                "parts": list(each.parts),
                "delta": str(each),
                "cost": _cost_exponent_json(each.cost),
            }
            for each in adaptive.deltas
        ],
    }


def _split_json(program: Program, split: Split) -> Json:
    return {
        "variables": list(split.variables),
        "relations": relations_of(program, split),
        "thresholds": powers(split),
    }


def _cost_exponent_json(exponent: Exponent | None) -> str | None:
    return None if exponent is None else str(exponent)
