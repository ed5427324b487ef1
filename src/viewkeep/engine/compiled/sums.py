"""Sums as machine code: which integers stand for the values that are summed, and how.

A sum of decimals is a sum of scaled integers. A sum of floats is one too: every finite float is a
whole number of units 2^-e, if e is large enough. Integers of several words hold such sums exactly,
whatever the order, and a delete subtracts what its insert added. What leaves them is noticed by the
machine code and taken back, and an engine with a smaller unit or more words takes over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import prod
from typing import Any

from viewkeep.engine.compiled.extremes import extreme_variables
from viewkeep.engine.compiled.formats import FLOATS, INTEGERS, NULL, Decimals, Format
from viewkeep.engine.compiled.rings import RingShape, Unfit, encode_integer, number_text, zero_text
from viewkeep.engine.compiled.values import Coder
from viewkeep.plan.payload import distinct_variables
from viewkeep.query.aggregates import ORDERED, Aggregate, Term
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import Call, Expression, Literal, columns_of
from viewkeep.query.expressions import Column as Variable
from viewkeep.rings.decimals import EXACT
from viewkeep.rings.exact_float import ExactFloat

WINDOW = (-60, 24)
"""Between which powers of two the bits of floats are expected before any is seen."""

ROOM = 40
"""Bits for how many rows there are."""

WORDS_AT_MOST = 8
LAST_DECIMAL_FACTOR = 2
"""Decimals of an expression that may be multiplied with each other: more would be rounded."""

_OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply"}


class _NotCompiled(Exception):  # noqa: N818 - no error: rows are lifted by Python
    """An expression that machine code does not compute."""


@dataclass(frozen=True)
class _Number:
    """A value that is lifted: its text, its base (1, 10, 2) and scale, and for floats none."""

    text: str
    base: int
    scale: int = 0
    factors: int = 1


@dataclass(frozen=True)
class AtomFactors:
    """The part of one atom in one number of the payload."""

    values: tuple[_Number, ...] = ()
    windows: tuple[int, ...] = ()
    """For each float among the values, the number of its window in the atom."""


@dataclass
class Component:
    """One number of the payload: what each atom contributes, and which columns are not null."""

    kind: str = "i"
    base: int = 1
    factor: int = 1
    lifts: dict[int, AtomFactors] = field(default_factory=dict)
    present: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By atom, the variables that must not be null."""

    def scale(self, atoms: frozenset[int]) -> int:
        """The scale of products over some atoms."""
        return sum(v.scale for a in atoms if a in self.lifts for v in self.lifts[a].values)

    def value(self, number: int, atoms: frozenset[int]) -> Any:
        """The ring element of a number."""
        if self.base == 10:
            return EXACT.scaleb(Decimal(number), -self.scale(atoms))
        return ExactFloat(number, -self.scale(atoms)) if self.base == 2 else number


@dataclass(frozen=True)
class Sums:
    """The payload of aggregates as numbers, and the lines that lift tuples into it; what is kept in
    order is apart (`extremes.py`)."""

    shape: RingShape
    components: tuple[Component, ...]
    lines: Mapping[int, list[str]]
    floats: Mapping[int, list[tuple[str, str]]]
    """By atom, the bits of each float that is lifted as text, and when it is there."""
    units: Mapping[tuple[int, int], int]
    """By atom and number of the float, the e of its units 2^-e."""
    places: Mapping[int, int]
    """By number of the aggregate, the place of those that are kept in order in the payload."""

    def decode(self, numbers: Any, atoms: frozenset[int]) -> tuple[Any, ...]:
        """The ring element of a product over some atoms."""
        pairs = zip(self.components, numbers, strict=True)
        return tuple([each.value(number, atoms) for each, number in pairs])


def sum_signature(query: ConjunctiveQuery, coder: Coder) -> object:
    """What of a coder the program depends on."""
    variables = _summed_variables(query)
    formats = tuple(coder.domains[v].format or INTEGERS for v in variables)
    return formats, tuple(sorted(coder.windows.items())), coder.wider if variables else 0


def mark_summed(query: ConjunctiveQuery, coder: Coder) -> None:
    """Note in the domains that the program depends on their formats."""
    for variable in _summed_variables(query):
        coder.domains[variable].lifted = True


def _summed_variables(query: ConjunctiveQuery) -> list[str]:
    lifts = [e for a in query.aggregates if a.function in ("sum", "avg") for e in a.lifts]
    return sorted({name for each in lifts for name in columns_of(each)} | extreme_variables(query))


def plan_sums(query: ConjunctiveQuery, coder: Coder) -> Sums | None:
    """The sums and counts of a query over columns of the coder's formats; None where some of them
    must be lifted by Python."""
    if not query.aggregates:
        return None
    try:
        return _Planner(query, coder).plan()
    except _NotCompiled:
        return None


class _Planner:
    """Builds the components of a query's aggregates."""

    def __init__(self, query: ConjunctiveQuery, coder: Coder) -> None:
        self._query, self._coder = query, coder
        self._keys = [distinct_variables(atom.variables) for atom in query.atoms]
        self._floats: dict[int, list[tuple[str, str]]] = {}
        self._units: dict[tuple[int, int], int] = {}

    def plan(self) -> Sums:
        components, places = [Component()], dict[int, int]()
        for number, aggregate in enumerate(self._query.aggregates):
            if aggregate.function in ORDERED:
                places[number] = len(components) + len(places)
            else:
                components += self._aggregate_components(aggregate)
        components = [self._sized(each) for each in components]
        kinds = "".join(each.kind for each in components)
        everything = frozenset(range(len(self._query.atoms)))
        shape = _shape(kinds, components, everything)
        lines = {atom: list(self._lines(shape, components, atom)) for atom in everything}
        return Sums(shape, tuple(components), lines, self._floats, self._units, places)

    # --- components -------------------------------------------------------------------------------

    def _aggregate_components(self, aggregate: Aggregate) -> Iterator[Component]:
        if aggregate.argument is None:
            return
        present: dict[int, tuple[str, ...]] = {}
        for lift in aggregate.lifts:
            atom = self._atom_of(lift)
            self._require_strict(lift)
            present[atom] = distinct_variables((*present.get(atom, ()), *sorted(columns_of(lift))))
        for term in aggregate.terms if aggregate.function != "count" else ():
            yield self._term_component(term, present)
        yield Component(present=present)

    def _term_component(self, term: Term, present: dict[int, tuple[str, ...]]) -> Component:
        component = Component(present=present)
        constants = [c.value if isinstance(c, Literal) else None for c in term.constants]
        if None in constants or not all(type(c) in (int, float, Decimal) for c in constants):
            raise _NotCompiled
        component.factor = prod(c for c in constants if isinstance(c, int))
        if not -(2**62) < component.factor < 2**62:
            raise _NotCompiled
        for expression in term.lifts:
            atom = self._atom_of(expression)
            number = self._number(expression, atom)
            if number.base != 1 and component.base not in (1, number.base):
                raise _NotCompiled  # a decimal times a float: the other engine refuses it
            component.base = max(component.base, number.base)
            windows: tuple[int, ...] = ()
            if number.base == 2:
                texts = self._floats.setdefault(atom, [])
                place = (atom, len(texts))
                self._units[place] = -self._coder.windows.get(place, WINDOW)[0]
                number = _Number(number.text, 2, self._units[place])
                windows = (len(texts),)
                texts.append((number.text, self._present_test(present[atom], atom)))
            own = component.lifts.get(atom, AtomFactors())
            component.lifts[atom] = AtomFactors((*own.values, number), own.windows + windows)
        return component

    def _sized(self, component: Component) -> Component:
        """The component with as many words as its values need."""
        if component.base == 1:
            return component
        words = 2 + self._coder.wider
        if component.base == 2:
            bits = ROOM
            for atom, lift in component.lifts.items():
                places = [(atom, number) for number in lift.windows]
                spans = [self._coder.windows.get(place, WINDOW) for place in places]
                bits += sum(high - low for low, high in spans)
                bits += 62 * (len(lift.values) - len(spans))
            words = max(2, -(-(bits + 1) // 64)) + self._coder.wider
        if words > WORDS_AT_MOST:
            raise Unfit(f"exact sums of such numbers need {words} words")
        component.kind = str(words)
        return component

    def _atom_of(self, expression: Expression) -> int:
        names = columns_of(expression)
        return next(i for i, atom in enumerate(self._query.atoms) if names <= atom.schema)

    # --- expressions ------------------------------------------------------------------------------

    def _require_strict(self, expression: Expression) -> None:
        """Refuse what may be null although its columns are not, or the other way round."""
        match expression:
            case Variable() | Literal(value=int() | float() | Decimal()):
                pass
            case Call(function="+" | "-" | "*" | "negate", arguments=arguments):
                for each in arguments:
                    self._require_strict(each)
            case _:
                raise _NotCompiled

    def _number(self, expression: Expression, atom: int) -> _Number:
        match expression:
            case Variable(name=name):
                return self._column(name, atom)
            case Call() if self._holds_floats(expression):
                return _Number(f"bits_of({self._float(expression, atom)})", 2)
            case Literal(value=value) if type(value) is int and abs(value) < 2**62:
                return _Number(str(value), 1, 0, 0)
            case Literal(value=Decimal() as value):
                form = Decimals(max(0, -int(value.as_tuple().exponent)))
                code = form.code(value)
                if code is not None:
                    return _Number(self._wide(str(code)), 10, form.scale, 0)
            case Call(function="negate", arguments=(argument,)):
                number = self._number(argument, atom)
                zero = "0" if number.base == 1 else self._wide("0")
                text = f"subtract({zero}, {number.text})"
                return _Number(text, number.base, number.scale, number.factors)
            case Call(function="+" | "-" | "*" as function, arguments=(left, right)):
                operands = self._number(left, atom), self._number(right, atom)
                return self._operation(function, *operands)
        raise _NotCompiled

    def _column(self, name: str, atom: int) -> _Number:
        form: Format = self._coder.domains[name].format or INTEGERS
        key = f"k{self._keys[atom].index(name)}"
        if isinstance(form, Decimals):
            return _Number(self._wide(key), 10, form.scale)
        if form == FLOATS:
            return _Number(key, 2)
        if form == INTEGERS:
            return _Number(key, 1)
        raise _NotCompiled

    def _operation(self, function: str, left: _Number, right: _Number) -> _Number:
        base = max(left.base, right.base)
        name = _OPERATIONS[function]
        if function == "*":
            factors = left.factors + right.factors
            if factors > LAST_DECIMAL_FACTOR and base == 10:
                raise _NotCompiled
            texts = (self._aligned(left, base, left.scale), self._aligned(right, base, right.scale))
            return _Number(f"{name}({', '.join(texts)})", base, left.scale + right.scale, factors)
        scale = max(left.scale, right.scale)
        texts = (self._aligned(left, base, scale), self._aligned(right, base, scale))
        factors = max(left.factors, right.factors)
        return _Number(f"{name}({', '.join(texts)})", base, scale, factors)

    def _aligned(self, number: _Number, base: int, scale: int) -> str:
        """The text of a number in a base and a scale."""
        text = self._wide(number.text) if base == 10 and number.base == 1 else number.text
        if scale == number.scale:
            return text
        if scale - number.scale > 18:
            raise _NotCompiled
        return f"multiply({text}, {self._wide(str(10 ** (scale - number.scale)))})"

    def _wide(self, text: str) -> str:
        return f"wide{2 + self._coder.wider}({text})"

    def _holds_floats(self, expression: Expression) -> bool:
        """Whether an expression is computed in floats, as it is once one of its parts is."""
        if isinstance(expression, Literal):
            return isinstance(expression.value, float)
        if isinstance(expression, Call):
            return any(map(self._holds_floats, expression.arguments))
        return isinstance(expression, Variable) and (
            self._coder.domains[expression.name].format == FLOATS
        )

    def _float(self, expression: Expression, atom: int) -> str:
        """The text of an expression in floats, rounded after every operation."""
        match expression:
            case Variable(name=name):
                number = self._column(name, atom)
                if number.base == 10:
                    raise _NotCompiled
                return f"{'float_of' if number.base == 2 else 'real'}({number.text})"
            case Literal(value=int() | float() | Decimal() as value):
                return repr(float(value))
            case Call(function="negate", arguments=(argument,)):
                return f"(-0.0 - {self._float(argument, atom)})"
            case Call(function="+" | "-" | "*" as function, arguments=(left, right)):
                if not self._holds_floats(expression):
                    raise _NotCompiled  # integers are not rounded before a float joins them
                return f"({self._float(left, atom)} {function} {self._float(right, atom)})"
        raise _NotCompiled

    # --- text -------------------------------------------------------------------------------------

    def _present_test(self, variables: tuple[str, ...], atom: int) -> str:
        return " and ".join(f"k{self._keys[atom].index(v)} != {NULL}" for v in variables)

    def _lines(self, shape: RingShape, components: list[Component], atom: int) -> Iterator[str]:
        """Statements that set the numbers of the payload; m is the multiplicity."""
        for name, each in zip(shape.names("p"), components, strict=True):
            text = self._product_text(each, atom)
            if each.present.get(atom):
                yield f"{name} = {zero_text(each.kind)}"
                yield f"if {self._present_test(each.present[atom], atom)}:"
                yield f"    {name} = {text}"
            else:
                yield f"{name} = {text}"

    def _product_text(self, component: Component, atom: int) -> str:
        kind = component.kind
        text = "m" if kind == "i" else f"wide{kind}(m)"
        if atom == 0 and component.factor != 1:
            text = f"multiply({text}, {number_text(kind, component.factor)})"
        lift = component.lifts.get(atom, AtomFactors())
        windows = iter(lift.windows)
        for value in lift.values:
            factor = value.text if kind == "i" else f"wide{kind}({value.text})"
            if value.base == 2:
                unit = f"s[{unit_name(atom, next(windows))}]"
                factor = f"binary{kind}({value.text}, {unit})"
            text = f"multiply({text}, {factor})"
        return text


def unit_name(atom: int, number: int) -> str:
    """What stands in the text for the place of a unit in the state."""
    return f"UNIT_{atom}_{number}"


def _shape(kinds: str, components: list[Component], atoms: frozenset[int]) -> RingShape:
    def multiply(left: Any, right: Any) -> list[str]:
        return [f"multiply({a}, {b})" for a, b in zip(left, right, strict=True)]

    def decode(numbers: Any) -> tuple[Any, ...]:
        return tuple([c.value(n, atoms) for c, n in zip(components, numbers, strict=True)])

    def encode(element: Any) -> list[Any]:
        return [encode_integer(element[0])]

    return RingShape(kinds, multiply, encode, decode, (1,) * len(components))
