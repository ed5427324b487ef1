"""From a query and options to a program: `auto` follows the analysis."""

import re
from dataclasses import dataclass

from viewkeep.analysis.access_pattern import fracture
from viewkeep.analysis.exponents import HALF
from viewkeep.analysis.maintenance_order import maintenance_order
from viewkeep.analysis.routes import Route, cost_of, routes
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.static_dynamic import tabulable, tractable_with_static
from viewkeep.analysis.variable_order import JoinShape
from viewkeep.errors import QueryError, did_you_mean
from viewkeep.plan.adaptive.counts import needs_no_split, plan_heavy_light_count
from viewkeep.plan.adaptive.thresholds import Thresholds, plan_epsilon
from viewkeep.plan.assemble import assemble
from viewkeep.plan.delta import plan_delta
from viewkeep.plan.payload import distinct_variables
from viewkeep.plan.program import NOTHING, Program
from viewkeep.plan.recompute import plan_recompute
from viewkeep.plan.recursive import plan_recursive
from viewkeep.plan.tree import Leaf
from viewkeep.plan.view_tree import RESULT, plan_view_tree
from viewkeep.query.conjunctive import ConjunctiveQuery

STRATEGIES = ("auto", "recompute", "delta", "recursive", "viewtree", "epsilon")
OUTPUTS = ("factorized", "list")
RESERVED = (RESULT, NOTHING)


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy that runs, and the notes that tell why."""

    strategy: str
    notes: tuple[str, ...] = ()


DEFAULTS = Thresholds()


def plan(
    query: ConjunctiveQuery,
    strategy: str = "auto",
    output: str = "factorized",
    thresholds: Thresholds = DEFAULTS,
    subtractable: bool = True,
) -> Program:
    """The program of a query; strategies without a factorized form keep a list.

    Tuples move between heavy and light parts, so that payloads must be `subtractable` for those.
    """
    _check_plan_option("strategy", strategy, STRATEGIES)
    _check_plan_option("output", output, OUTPUTS)
    listed = output == "list"
    if strategy == "epsilon" and not subtractable:
        raise QueryError("heavy and light parts need a ring with subtraction: tuples move")
    if strategy == "epsilon" and listed and query.free:
        raise QueryError('strategy="epsilon" has no list of the output: use output="factorized"')
    adaptive = subtractable and not (listed and query.free)
    choice = choose(query, strategy, adaptive, listed)
    if choice.strategy != "epsilon":
        return without_static(_plan_choice(query, choice, listed), query)
    leaves, relations = _query_leaves(query), _atom_relations(query)
    return plan_epsilon(query, leaves, relations, thresholds, choice.notes)


def plan_groups(query: ConjunctiveQuery) -> Program:
    """The program with heavy and light parts that keeps the output as a list, as lakes do: an
    update takes O(N^1/2), amortized, for each group that it may change, or O(N^2/3) by two
    thresholds."""
    leaves, relations = _query_leaves(query), _atom_relations(query)
    if needs_no_split(leaves, query.outputs):
        raise QueryError(
            "each group that changes takes constant time without heavy parts, by view trees"
        )
    program = plan_heavy_light_count(
        leaves, relations, lambda variables, atoms: float(HALF), head=query.outputs
    )
    if program is None:
        raise QueryError(
            "no split was found, of those tried, that keeps updates below O(N) for each group"
        )
    return program


def _plan_choice(query: ConjunctiveQuery, choice: Choice, listed: bool) -> Program:
    if choice.strategy == "viewtree":
        return _plan_view_tree(query, listed, choice.notes)
    planner = {"delta": plan_delta, "recursive": plan_recursive, "recompute": plan_recompute}
    head = query.outputs + query.inputs
    inputs = tuple((v, v) for v in query.inputs)
    return planner[choice.strategy](
        _query_leaves(query), _atom_relations(query), head, inputs, choice.notes
    )


def choose(
    query: ConjunctiveQuery, strategy: str, adaptive: bool = True, listed: bool = False
) -> Choice:
    """What to run: the cheapest route, or what the user asked for; a list is kept by those only
    that see its changes."""
    if strategy != "auto":
        return Choice(strategy)
    ranked = sorted(routes(query), key=cost_of)
    left_out = {"epsilon"} if not adaptive else set[str]()
    left_out |= {"recompute"} if listed else set()
    best = next(route for route in ranked if route.strategy not in left_out)
    return Choice(best.strategy, (*_tabulation_notes(query, best), _route_text(best)))


def without_static(program: Program, query: ConjunctiveQuery) -> Program:
    """Static relations are loaded once: no trigger, and no index that only a trigger would use."""
    static = query.constraints.static
    return assemble(
        program.strategy,
        program.maps,
        (trigger for trigger in program.triggers if trigger.relation not in static),
        program.loading,
        program.enumerator,
        program.inputs,
        program.listed,
        program.notes,
    )


def _tabulation_notes(query: ConjunctiveQuery, best: Route) -> tuple[str, ...]:
    """Why tabulating all states of the dynamic relations is possible, but not done."""
    if best.bounds.constant or not tabulable(query):
        return ()
    return (tractable_with_static(query).because,)


def _plan_view_tree(query: ConjunctiveQuery, listed: bool, notes: tuple[str, ...]) -> Program:
    """Factorized output is read from the fracture; a list is kept over outputs and inputs."""
    split = query if listed or not query.inputs else fracture(query)
    shape = JoinShape.of(query) if split is query else join_shape(query)
    inputs = {
        copy: original
        for atom, copied in zip(query.atoms, split.atoms, strict=True)
        for original, copy in zip(atom.variables, copied.variables, strict=True)
        if original in query.inputs
    }
    head = query.outputs + query.inputs if listed else query.outputs
    return plan_view_tree(
        shape,
        maintenance_order(query, shape),
        tuple(_query_leaves(split)),
        _atom_relations(query),
        head,
        tuple(inputs.items()),
        listed,
        notes,
    )


def names(query: ConjunctiveQuery) -> tuple[str, ...]:
    """A name for each atom's map: the relation, numbered where it occurs again.

    Quotes tell a relation from the views and from the words of the trigger language.
    """
    names: list[str] = []
    for atom in query.atoms:
        earlier = sum(each.relation == atom.relation for each in query.atoms[: len(names)])
        plain = re.fullmatch(r"(?!V'?_)\w+'*", atom.relation) and atom.relation not in RESERVED
        name = atom.relation if plain else f"`{atom.relation}`"
        names.append(f"{name}#{earlier + 1}" if earlier else name)
    return tuple(names)


def _query_leaves(query: ConjunctiveQuery) -> list[Leaf]:
    return [
        Leaf(i, name, distinct_variables(atom.variables))
        for i, (name, atom) in enumerate(zip(names(query), query.atoms, strict=True))
    ]


def _atom_relations(query: ConjunctiveQuery) -> tuple[str, ...]:
    return tuple(atom.relation for atom in query.atoms)


def _route_text(route: Route) -> str:
    return f"{route.strategy}: {route.reason}; {route.bounds}"


def _check_plan_option(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        hint = did_you_mean(str(value), allowed)
        raise QueryError(f'{name}="{value}": expected one of {", ".join(allowed)}{hint}')
