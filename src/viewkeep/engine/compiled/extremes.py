"""Min, max and the number of distinct values as machine code: the values of each group in order,
beside what is summed.

Where the ring of ordered multisets has one element for the group g, with the values of x and their
counts, the compiled engine has a map of counts by (g, x), its *values*. An index of that map keeps
the values of a group as a heap (`emit/heaps.py`), so that a change takes O(log N) and the extreme
is the first. Values flow through joins as keys do: where a map V(g) is multiplied by a payload, its
values are looped over and the counts multiplied, in blocks of their own beside those of the sums.

Distinct values are counted by the length of a group's list, of which no order is asked.

Nulls are counted as one more value, behind all others: then a group has values if and only if it
has rows. That holds while no count is negative; a result that is read while deletes have overtaken
their inserts is left to the reference engine.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from viewkeep.engine.compiled.layout import CountBlock
from viewkeep.engine.compiled.rings import Unfit
from viewkeep.errors import ViewkeepError
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    INPUT,
    NOTHING,
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Map,
    Program,
    Step,
    Trigger,
    Union,
    Update,
    fresh,
    opened,
)
from viewkeep.query.aggregates import COUNT_DISTINCT, EXTREMES, ORDERED, Aggregate
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import Column as Variable
from viewkeep.rings import MAX, MIN, MULTISETS, ProductRing, Ring
from viewkeep.rings.multiset import Multiset, multiset_of_size
from viewkeep.rings.ordered_tree import build

if TYPE_CHECKING:
    from viewkeep.engine.compiled.formats import Format
    from viewkeep.engine.compiled.values import Coder

UNORDERED = "any_i"
"""The order of a list whose length alone is asked for."""

OVERTAKEN = "deletes have overtaken their inserts, and then values have no order in machine code"

_UNORDERED = "its values are not all integers, decimals, floats, dates, timestamps or texts"


@dataclass(frozen=True)
class Extreme:
    """A min, max or number of distinct values of a query: its place in the payload, and where its
    values are."""

    place: int
    function: str
    variable: str
    atom: int
    group: tuple[str, ...]
    """The key of the map whose payloads the output is read from."""
    values: str
    """The map with the counts of values, or none where the variable is a part of that key."""
    order: str
    insert_only: bool

    @property
    def area(self) -> str:
        """The word of the state that a look-up leaves the extreme in."""
        return f"extreme {self.place}"

    def element(self, value: Any, count: int) -> Any:
        """What of the ring element can be seen: the extreme, with the sign of the count."""
        present = value is not None and count
        if self.function == COUNT_DISTINCT:
            return multiset_of_size(value if present else 0, 1 if count > 0 else -1)
        return self.element_of(0, [(value, 1 if count > 0 else -1)] if present else [])

    def element_of(self, number: int, values: list[tuple[Any, int]]) -> Any:
        """The ring element of values in order with their counts, or of a number where none are
        lifted."""
        if not self.insert_only or self.function == COUNT_DISTINCT:
            return Multiset(number, build(values))
        if not values:
            return 0 if number else None
        return values[0 if self.function == "min" else -1][0]


@dataclass(frozen=True)
class OrderedProgram:
    """The extremes of a query, and its program with the maps and blocks of their values."""

    program: Program
    each: tuple[Extreme, ...]
    counted: frozenset[str]
    """Maps of values, of which no count may be negative when they are read."""

    @property
    def orders(self) -> dict[str, list[tuple[tuple[str, ...], str]]]:
        """By map, the columns of its heaps and their order."""
        orders: dict[str, dict[tuple[tuple[str, ...], str], None]] = {}
        for extreme in self.each:
            if extreme.values:
                key = self.program.map(extreme.values).key
                columns = tuple(v for v in key if v in extreme.group)
                orders.setdefault(extreme.values, {})[columns, extreme.order] = None
        return {name: list(own) for name, own in orders.items()}

    @property
    def of_texts(self) -> bool:
        """Whether texts are among the values."""
        return any(each.order.endswith("_t") for each in self.each)

    def values_of(self, each: Map, extreme: Extreme) -> Map:
        """A map that has the values of another one's entries, maybe each several times."""
        has_values = (
            other
            for other in self.program.maps
            if {*each.key, extreme.variable} <= set(other.key) and other.atoms == each.atoms
        )
        found = next((m for m in has_values if not m.live or m.name in self.counted), None)
        if found is None:
            raise ViewkeepError(f"the values of {extreme.variable} are not kept for {each.name}")
        return found

    def completed(
        self, elements: Iterable[tuple[Any, ...]], codes: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[Any, ...]]:
        """Elements of sums with those of the extremes in their places, from their values."""
        for number, element in enumerate(elements):
            whole = list(element)
            for extreme, values in zip(self.each, codes, strict=True):
                whole.insert(extreme.place, extreme.element(values[number], element[0]))
            yield tuple(whole)


def extreme_aggregates(query: ConjunctiveQuery) -> list[Aggregate]:
    """The aggregates of a query whose values are kept in order."""
    return [each for each in query.aggregates if each.function in ORDERED]


def without_extremes(query: ConjunctiveQuery, ring: Ring[Any]) -> Ring[Any]:
    """The ring of a query's payloads without the components of its extremes."""
    if not extreme_aggregates(query) or not isinstance(ring, ProductRing):
        return ring
    return ProductRing(*(each for each in ring.rings if each not in (MULTISETS, MIN, MAX)))


def extremes_obstacle(query: ConjunctiveQuery) -> str:
    """Why the extremes of a query cannot be machine code; nothing if they can, by their form."""
    for aggregate in extreme_aggregates(query):
        if not isinstance(aggregate.argument, Variable):
            return f"{aggregate} is of an expression, which machine code does not keep in order"
    return "access patterns with min or max are no machine code" if query.inputs else ""


def extreme_variables(query: ConjunctiveQuery) -> set[str]:
    """The variables whose values are kept in order."""
    arguments = [each.argument for each in extreme_aggregates(query)]
    return {each.name for each in arguments if isinstance(each, Variable)}


def plan_extremes(
    query: ConjunctiveQuery, program: Program, coder: "Coder", places: Mapping[int, int]
) -> OrderedProgram | None:
    """The extremes of a query and the program that keeps them; None if it has none.

    `places` tells the place in the payload by the number of the aggregate.
    """
    if not extreme_aggregates(query):
        return None
    if problem := extremes_obstacle(query) or _program_obstacle(program):
        raise Unfit(problem)
    extremes, counted = list[Extreme](), set[str]()
    for variable in sorted(extreme_variables(query)):
        values = _Values(query, program, variable)
        program = values.extended()
        counted |= values.counted
        for number, aggregate in enumerate(query.aggregates):
            if aggregate.function in ORDERED and _name(aggregate) == variable:
                extremes.append(
                    Extreme(
                        places[number],
                        aggregate.function,
                        variable,
                        values.atom,
                        values.read.key,
                        values.read_values,
                        _order_of(query, aggregate, coder.domains[variable].format),
                        query.constraints.insert_only,
                    )
                )
    extremes.sort(key=lambda each: each.place)
    return OrderedProgram(program, tuple(extremes), frozenset(counted))


def _name(aggregate: Aggregate) -> str:
    assert isinstance(aggregate.argument, Variable)
    return aggregate.argument.name


def _order_of(query: ConjunctiveQuery, aggregate: Aggregate, form: "Format | None") -> str:
    """The order of a list of values: which are first, and how codes of a format are compared.

    Distinct values are counted in any order, that of a min or max of theirs if there is one.
    """
    kind = "i" if form is None else form.order
    if not kind:
        raise Unfit(f"{aggregate}: {_UNORDERED}")
    if aggregate.function != COUNT_DISTINCT:
        return f"{aggregate.function}_{kind}"
    same = (a.function for a in query.aggregates if a.argument == aggregate.argument)
    function = next((each for each in same if each in EXTREMES), None)
    return UNORDERED if function is None else f"{function}_{kind}"


def _program_obstacle(program: Program) -> str:
    """Why values cannot be kept in order beside a program; nothing if they can."""
    if program.splits:
        return "heavy and light parts with min or max are no machine code"
    steps = [*program.enumerator.steps, *(s for b in program.loading for s in b.steps)]
    steps += [s for t in program.triggers for b in t.blocks for s in b.steps]
    if not program.enumerator.distinct or any(isinstance(step, Union) for step in steps):
        return "unions with min or max are no machine code"
    return ""


class _Values:
    """Extends a program by the maps and blocks of one variable's values."""

    def __init__(self, query: ConjunctiveQuery, program: Program, variable: str) -> None:
        self._program, self.variable = program, variable
        self.atom = next(i for i, each in enumerate(query.atoms) if variable in each.schema)
        self._input = next(m for m in program.maps if m.definition == INPUT and self._holds(m))
        self._maps = {each.name: each for each in program.maps}
        self._added: dict[str, Map] = {}
        """By the map with the groups, the map with their values."""
        self.counted: set[str] = set()
        self.read = self._read_map()
        self.read_values = "" if variable in self.read.key else self._values_of(self.read).name

    def extended(self) -> Program:
        """The program with all maps that are needed, and what keeps them up to date."""
        while True:
            count = len(self._added)
            triggers = [self._trigger(each) for each in self._program.triggers]
            loading = [new for each in self._program.loading for new in self._load_blocks(each)]
            if len(self._added) == count:
                break
        own = self._program
        maps = (*own.maps, *self._added.values())
        return assemble(
            own.strategy,
            maps,
            triggers,
            loading,
            own.enumerator,
            own.inputs,
            own.listed,
            own.notes,
        )

    # --- maps -------------------------------------------------------------------------------------

    def _holds(self, each: Map) -> bool:
        """Whether the payloads of a map hold values of the variable."""
        return self.atom in each.atoms and not each.live

    def _read_map(self) -> Map:
        """The map from which the output has its payload."""
        maps = [
            self._maps[access.map]
            for step in self._program.enumerator.steps
            if isinstance(step, Join)
            for access in step.accesses
            if access.weigh and self._holds(self._maps[access.map])
        ]
        if len(maps) != 1:
            raise Unfit(f"the output has the values of {self.variable} from several maps")
        return maps[0]

    def _values_of(self, each: Map) -> Map:
        """The map of counts by the key of a map and the variable: that map itself, the input, or
        one that is added."""
        if self.variable in each.key:
            return each
        own_key = {*each.key, self.variable} == set(self._input.key)
        if own_key and each.atoms == self._input.atoms:
            self.counted.add(self._input.name)
            return self._input
        if each.name not in self._added:
            names = [*self._maps, *(other.name for other in self._added.values())]
            name = fresh(f"{each.name} by {self.variable}", names)
            key = (*each.key, self.variable)
            definition = f"rows of {each.name} by {self.variable}"
            self._added[each.name] = Map(name, key, definition, each.atoms, live=True)
            self.counted.add(name)
        return self._added[each.name]

    def _source_values(self, each: Map) -> Map:
        """The map from which values are loaded where payloads come from this one: one further
        below, if this only sums it up."""
        if self.variable in each.key:
            return each
        for block in self._program.loading:
            if block.source != NOTHING and block.steps == (Update(each.name, each.key),):
                return self._source_values(self._maps[block.source])
        return self._values_of(each)

    # --- blocks -----------------------------------------------------------------------------------

    def _trigger(self, trigger: Trigger) -> Trigger:
        """The trigger with blocks that change the values."""
        locals_, blocks = set[str](), list[Block]()
        for block in reversed(trigger.blocks):
            source, variables = block.source, block.variables
            if source != UPDATE:
                source, variables = self._local(source), self._with_variable(variables)
            bound = trigger.parameters if source == UPDATE else variables
            if steps := self._steps(block.steps, bound, locals_):
                blocks.append(CountBlock(source, variables, steps))
                locals_ |= set() if source == UPDATE else {source}
        return replace(trigger, blocks=(*trigger.blocks, *reversed(blocks)))

    def _local(self, local: str) -> str:
        return f"{local} by {self.variable}"

    def _with_variable(self, key: tuple[str, ...]) -> tuple[str, ...]:
        return key if self.variable in key else (*key, self.variable)

    def _load_blocks(self, block: Block) -> Iterator[Block]:
        """The block, and one that loads the values of what it loads, if they are kept."""
        yield block
        if not block.weigh or not self._steps_to_values(block.steps, set()):
            return
        source, variables = block.source, block.variables
        if source != NOTHING and self._holds(self._maps[source]):
            values = self._source_values(self._maps[source])
            source, variables = values.name, values.key
        yield CountBlock(source, variables, self._steps(block.steps, variables, set()))

    def _steps_to_values(self, steps: Sequence[Step], locals_: set[str]) -> Sequence[Step]:
        """The steps up to the last that changes values, or a local delta of them."""
        count = 0
        for number, step in enumerate(steps, start=1):
            changes = isinstance(step, Update) and step.target in self._added
            if changes or (isinstance(step, Collect) and self._local(step.local) in locals_):
                count = number
            if isinstance(step, Update) and step.live:
                break
        return steps[:count]

    def _steps(
        self, steps: Sequence[Step], bound: Iterable[str], locals_: set[str]
    ) -> tuple[Step, ...]:
        """The steps that bring changes to the values; none if there is nothing to change."""
        added, variables = list[Step](), set(bound)
        for step in self._steps_to_values(steps, locals_):
            if isinstance(step, Join):
                for join in self._joins(step, variables):
                    added.append(join)
                    variables |= set(join.opens)
            elif isinstance(step, Update) and step.target in self._added:
                values = self._added[step.target]
                added.append(Update(values.name, values.key))
            elif isinstance(step, Collect) and self._local(step.local) in locals_:
                added.append(Collect(self._local(step.local), self._with_variable(step.key)))
        return tuple(added)

    def _joins(self, join: Join, bound: set[str]) -> Iterator[Join]:
        """The join over values, where one of its maps holds some."""
        for access in join.accesses:
            each = self._maps[access.map]
            if access.weigh and self._holds(each) and self.variable not in each.key:
                values = self._values_of(each)
                counts = Access(values.name, values.key)
                others = tuple(other for other in join.accesses if other is not access)
                if others and join.opens:
                    raise Unfit(f"the values of {self.variable} meet others in an intersection")
                if others:
                    yield replace(join, accesses=others)
                yield Join((counts,), opened(bound, values.key))
                return
        yield join
