"""What a call of a function means for types: its arity, its type rule, its nullability.

`functions` and `aggregates` list the functions that views may use.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeep.errors import QueryError
from viewkeep.query.expressions import Value
from viewkeep.query.types.data_types import VOID, Type
from viewkeep.query.types.internal_functions import COMPARABLE, PARTS
from viewkeep.query.types.rules import common_type, is_numeric


@dataclass(frozen=True, slots=True)
class TypedValue:
    """What is known of an expression: its type, whether it may be NULL, its value if a literal."""

    type: Type
    nullable: bool
    value: Value = None


CARRIED = frozenset({"isnull", "isnotnull", "case", "coalesce", COMPARABLE, *PARTS})
"""The functions that take values of every type, also of those that views only carry."""

EQUALITIES = frozenset({"=", "<>", "<=>", "in", "nullif"})
"""The functions that ask whether values are equal."""

ORDERINGS = frozenset({"<", "<=", ">", ">=", "greatest", "least"})
"""The functions that ask for the order of values."""

_OF_NESTED = (
    "size element_at try_element_at get array_contains array_position array_remove array_append "
    "array_prepend array_compact array_repeat array_join array_max array_min sort_array array_sort "
    "slice flatten concat reverse array_distinct array_union array_except array_intersect "
    "arrays_overlap map_keys map_values map_entries map_contains_key named_struct array"
)
OF_NESTED = frozenset(_OF_NESTED.split())
"""The functions of arrays, maps and structs: their rules say which ones they take."""

ONLY_CARRIED = "views carry such columns as they are, and compute nothing with them"


def type_refusal(type_: Type, function: str) -> str | None:
    """Why a function does not take values of a type that views carry; None where it does.

    >>> from viewkeep.query.types.data_types import parse_type
    >>> type_refusal(parse_type("array<int>"), "<")
    >>> type_refusal(parse_type("map<int,int>"), "=")
    'views carry such columns as they are, and compute nothing with them'
    """
    if not type_.is_nested or function in CARRIED or function in OF_NESTED:
        return None
    if function in EQUALITIES or function in ORDERINGS:
        return ONLY_CARRIED if type_.has_map else None
    return ONLY_CARRIED


Rule = Callable[[Sequence[TypedValue]], Type]
"""The result type of the arguments' types; raises QueryError on a clash."""


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """A function: how many arguments it takes and the type rule of its result.

    `nullable` is "any" (NULL if an argument is), "all" (NULL only if every argument is), "never",
    "always" (may be NULL whatever the arguments) or "results" (of CASE, which needs an ELSE).
    """

    name: str
    rule: Rule
    least: int
    most: int | None
    nullable: str = "any"
    takes: tuple[tuple[Type, ...], ...] = ()
    """The types of its arguments, where the rule is more than these."""

    def expected(self, place: int) -> tuple[Type, ...]:
        """The types that an argument may have; none where they depend on the others."""
        types = self.takes or (self.rule.types if isinstance(self.rule, OfTypes) else ())
        return types[min(place, len(types) - 1)] if types else ()

    def result(self, arguments: Sequence[TypedValue]) -> TypedValue:
        """The type of a call.

        >>> from viewkeep.query.types.data_types import BIGINT, INT
        >>> greatest = FunctionSignature("greatest", of_same("greatest"), 2, None, "all")
        >>> print(greatest.result([TypedValue(INT, False), TypedValue(BIGINT, True)]).type)
        bigint
        """
        self.check_count(len(arguments))
        for argument in arguments:
            reason = type_refusal(argument.type, self.name)
            if reason is not None:
                raise QueryError(f"{self.name} cannot take {argument.type}: {reason}")
        return TypedValue(self.rule(arguments), self._result_nullable(arguments))

    def check_count(self, count: int) -> None:
        """Refuse a call with too few or too many arguments."""
        if count < self.least or (self.most is not None and count > self.most):
            raise QueryError(
                f"{self.name}() takes {self._argument_count_text()}, but here it has {count}"
            )

    def _argument_count_text(self) -> str:
        if self.most is None:
            count = f"at least {self.least}"
        elif self.most == self.least:
            count = str(self.least)
        else:
            count = f"{self.least} to {self.most}"
        return f"{count} argument{'' if count.endswith('1') else 's'}"

    def _result_nullable(self, arguments: Sequence[TypedValue]) -> bool:
        match self.nullable:
            case "never":
                return False
            case "always":
                return True
            case "all":
                return all(argument.nullable for argument in arguments)
            case "results":
                results = case_results(arguments)
                return len(arguments) % 2 == 0 or any(result.nullable for result in results)
        return any(argument.nullable for argument in arguments)


def clash(name: str, arguments: Sequence[TypedValue], rule: str) -> QueryError:
    """The error of arguments whose types break the rule of a function."""
    types = ", ".join(str(argument.type) for argument in arguments)
    return QueryError(f"{name}: {rule}, but found {types}; add a CAST")


def only_by_spark(name: str, what: str) -> QueryError:
    """The error of a call that Spark computes, and nothing else does."""
    return QueryError(f"{name}() with {what}: only Spark computes it: Keeper(path, spark)")


@dataclass(frozen=True, slots=True)
class OfTypes:
    """The rule of a function whose arguments have these types; the last one may repeat."""

    name: str
    result: Type
    types: tuple[tuple[Type, ...], ...]

    def __call__(self, arguments: Sequence[TypedValue]) -> Type:
        """The type of a call."""
        for index, argument in enumerate(arguments):
            allowed = self.types[min(index, len(self.types) - 1)]
            if argument.type not in (*allowed, VOID):
                names = " or ".join(dict.fromkeys(map(str, allowed)))
                raise clash(self.name, arguments, f"argument {index + 1} must be {names}")
        return self.result


def of_types(name: str, result: Type, *types: tuple[Type, ...]) -> OfTypes:
    """The rule of a function whose arguments have these types; the last one may repeat."""
    return OfTypes(name, result, types)


def of_same(name: str) -> Rule:
    """The rule of a function whose result has the type that all arguments fit."""
    return lambda arguments: fitting_type(name, arguments)


def fitting_type(name: str, arguments: Sequence[TypedValue]) -> Type:
    """The type that all arguments fit; an error if there is none."""
    result: Type | None = VOID
    for argument in arguments:
        result = None if result is None else common_type(result, argument.type)
    if result is None:
        raise clash(name, arguments, "the types must fit together")
    return result


def of_numbers(name: str, result: Callable[[Type], Type]) -> Rule:
    """The rule of a function of numbers, with a type made of that of the first."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        if not all(is_numeric(argument.type) or argument.type == VOID for argument in arguments):
            raise clash(name, arguments, "the arguments must be numbers")
        return result(arguments[0].type)

    return rule


def case_results(arguments: Sequence[TypedValue]) -> Sequence[TypedValue]:
    """The arguments of CASE that may be its result."""
    return [*arguments[1::2], *arguments[len(arguments) & ~1 :]]
