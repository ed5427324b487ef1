"""Select-project-join trees as one list of scans and one list of conditions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from viewkeep.errors import QueryError
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.expressions import TRUE, Call, Column, Expression, conjuncts, substitute
from viewkeep.query.show import formula_text
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.inference import Schema, find_field


class NotConjunctive(QueryError):  # noqa: N818 - says what the view is, which is no fault
    """A view that is not a conjunctive query, with the construct that prevents it.

    `node` is the operator of that construct, where it is one.
    """

    def __init__(self, construct: str, node: Node | None = None, place: str = "") -> None:
        super().__init__(f"not a conjunctive query: {construct} {place}".rstrip())
        self.construct, self.node = construct, node


@dataclass(frozen=True, slots=True)
class Flat:
    """Scans, the conditions between them, and what each output column is over their columns."""

    scans: tuple[Scan, ...]
    conditions: tuple[Expression, ...]
    outputs: dict[str, Expression]

    def over_scans(self, expression: Expression) -> Expression:
        """An expression over the outputs as one over the columns of the scans."""
        return substitute(expression, lambda column: self.outputs[column.name])


def flatten(node: Node) -> Flat:
    """The scans and conditions of a tree of selections, projections and joins.

    Bags make this exact: without duplicates removed in between, the order of operators is free.
    """
    flat = _flatten_node(node, _alias_supply())
    conditions = [part for c in flat.conditions for part in conjuncts(c) if part != TRUE]
    return Flat(flat.scans, tuple(conditions), flat.outputs)


def _flatten_node(node: Node, occurrence: Callable[[Scan], Scan]) -> Flat:
    match node:
        case Scan():
            scan = occurrence(node)
            columns = zip(node.names, map(Column, scan.names), strict=True)
            return Flat((scan,), (), dict(columns))
        case Select():
            below = _flatten_node(node.child, occurrence)
            condition = below.over_scans(node.condition)
            return Flat(below.scans, (*below.conditions, condition), below.outputs)
        case Project():
            below = _flatten_node(node.child, occurrence)
            outputs = {o.name: below.over_scans(o.expression) for o in node.outputs}
            return Flat(below.scans, below.conditions, outputs)
        case Join():
            left, right = (
                _flatten_node(node.left, occurrence),
                _flatten_node(node.right, occurrence),
            )
            conditions = left.conditions + right.conditions
            pair = Flat(left.scans + right.scans, conditions, left.outputs | right.outputs)
            condition = pair.over_scans(node.condition)
            return Flat(pair.scans, (*pair.conditions, condition), pair.outputs)
        case (
            Stored()
            | Values()
            | SemiJoin()
            | AntiJoin()
            | UnionAll()
            | GroupBy()
            | Distinct()
            | Window()
            | Unnest()
        ):
            raise NotConjunctive(construct_name(node), node)


def _alias_supply() -> Callable[[Scan], Scan]:
    """Gives every scan an alias of its own, also where a hand-made tree uses one twice."""
    aliases: set[str] = set()

    def occurrence(scan: Scan) -> Scan:
        alias, count = scan.alias, 1
        while alias in aliases:
            count += 1
            alias = f"{scan.alias}_{count}"
        aliases.add(alias)
        return Scan(scan.name, scan.table, alias)

    return occurrence


def construct_name(node: Node) -> str:
    """What people call an operator that is no part of a conjunctive query."""
    match node:
        case Stored():
            return f"the stored relation {node.name}"
        case Values():
            return "rows that the query holds (VALUES, or SELECT without FROM)"
        case SemiJoin():
            return "IN, EXISTS or INTERSECT (a semijoin)"
        case AntiJoin():
            return "NOT IN, NOT EXISTS or EXCEPT (an antijoin)"
        case UnionAll(inputs=(Join(), Project(child=AntiJoin()), *_)):
            return "an outer join (rewritten as a union)"
        case UnionAll():
            return "a union"
        case GroupBy():
            return "an aggregate or GROUP BY inside the query"
        case Distinct():
            return "DISTINCT inside the query"
        case Window():
            return "a window function"
        case Unnest():
            return "explode() and its kin"
    return type(node).__name__


def split_equalities(
    conditions: Iterable[Expression], schema: Schema, are_alike: Callable[[Type, Type], bool]
) -> tuple[list[tuple[str, str]], list[Expression]]:
    """Equalities of columns, which become shared variables, and the other conditions; `are_alike`
    tells whether equal values of two types are one value of a variable."""
    equalities: list[tuple[str, str]] = []
    conditions_left: list[Expression] = []
    for condition in conditions:
        match condition:
            case Call("=" | "<=>" as operator, (Column(first), Column(second))):
                left, right = find_field(first, schema), find_field(second, schema)
                if operator == "<=>" and left.nullable and right.nullable:
                    raise NotConjunctive(
                        f"{formula_text(condition)}, a null-safe equality of columns that may be "
                        "NULL"
                    )
                if not are_alike(left.type, right.type):
                    raise NotConjunctive(f"an equality of {left.type} and {right.type}")
                equalities.append((first, second))
            case _:
                conditions_left.append(condition)
    return equalities, conditions_left
