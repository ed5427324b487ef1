"""A direct evaluator of the algebra on bags of rows: what the translation is checked with."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from typing import Any

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
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.evaluate.rows import unnest
from viewkeep.query.evaluate.windows import window
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal
from viewkeep.query.types.data_types import INTEGRAL, Type

Row = tuple[Any, ...]
Bag = Counter[Row]
Data = Mapping[str, Sequence[Row]]


def evaluate(node: Node, data: Data) -> Bag:
    """The rows of a node with their multiplicities."""
    match node:
        case Scan():
            return Counter(data[node.name])
        case Values():
            return Counter(tuple(value(each, {}) for each in row) for row in node.rows)
        case Select():
            rows = evaluate(node.child, data)
            return Bag({r: n for r, n in rows.items() if _holds(node.condition, node.child, r)})
        case Project():
            result: Bag = Counter()
            for row, count in evaluate(node.child, data).items():
                values = dict(zip(node.child.names, row, strict=True))
                result[tuple(value(o.expression, values) for o in node.outputs)] += count
            return result
        case Join():
            return Counter({a + b: n * m for a, n, b, m in _pairs(node, data)})
        case SemiJoin() | AntiJoin():
            matched = {row for row, _, _, _ in _pairs(node, data)}
            keep = isinstance(node, SemiJoin)
            left = evaluate(node.left, data)
            return Counter({row: n for row, n in left.items() if (row in matched) == keep})
        case UnionAll():
            return sum((evaluate(child, data) for child in node.inputs), Counter())
        case GroupBy():
            return _group(node, data)
        case Unnest():
            return Counter(unnest(node, evaluate(node.child, data).elements()))
        case Window():
            return Counter(window(node, evaluate(node.child, data).elements()))
        case Distinct():
            return Counter(dict.fromkeys(evaluate(node.child, data), 1))


def _holds(condition: Expression, node: Node, row: Row) -> bool:
    return value(condition, dict(zip(node.names, row, strict=True))) is True


def _pairs(node: Join | SemiJoin | AntiJoin, data: Data) -> list[tuple[Row, int, Row, int]]:
    names = node.left.names + node.right.names
    left, right = evaluate(node.left, data), evaluate(node.right, data)
    return [
        (a, n, b, m)
        for (a, n), (b, m) in product(left.items(), right.items())
        if value(node.condition, dict(zip(names, a + b, strict=True))) is True
    ]


def _group(node: GroupBy, data: Data) -> Bag:
    groups: dict[Row, list[dict[str, Any]]] = {} if node.keys else {(): []}
    for row, count in evaluate(node.child, data).items():
        values = dict(zip(node.child.names, row, strict=True))
        groups.setdefault(tuple(values[k] for k in node.keys), []).extend([values] * count)
    return Counter(
        key + tuple(_aggregate(a.function, a.argument, rows) for a in node.aggregates)
        for key, rows in groups.items()
    )


def _aggregate(function: str, argument: Expression | None, rows: list[dict[str, Any]]) -> Any:
    if argument is None:
        return len(rows)
    values = [v for v in (value(argument, row) for row in rows) if v is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    match function:
        case "sum":
            return sum(values)
        case "avg":
            return sum(values) / len(values)
        case "min":
            return min(values)
    return max(values)


def value(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value of an expression, with NULL as None."""
    match expression:
        case Column():
            return row[expression.name]
        case Literal():
            return expression.value
        case Cast():
            return _cast(value(expression.argument, row), expression.type)
        case Call():
            arguments = [value(argument, row) for argument in expression.arguments]
            return _call(expression.function, arguments)


def _cast(argument: Any, target: Type) -> Any:
    if argument is None:
        return None
    if target in INTEGRAL:
        return int(argument)
    match target.name:
        case "double" | "float":
            return float(argument)
        case "decimal":
            return Decimal(argument).quantize(
                Decimal(1).scaleb(-(target.scale or 0)), ROUND_HALF_UP
            )
        case "string":
            return str(argument)
        case "boolean":
            return bool(argument)
    return argument


def _call(function: str, arguments: list[Any]) -> Any:
    lazy = _WITH_NULLS.get(function)
    if lazy is not None:
        return lazy(*arguments)
    if None in arguments:
        return None
    return _STRICT[function](*arguments)


def _single(found: Any, rows: int | None) -> Any:
    if (rows or 0) > 1:
        raise QueryError("more than one row")
    return found


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _in(item: Any, *choices: Any) -> bool | None:
    if item is None:
        return None
    if item in [c for c in choices if c is not None]:
        return True
    return None if None in choices else False


def _case(*parts: Any) -> Any:
    for index in range(0, len(parts) - 1, 2):
        if parts[index] is True:
            return parts[index + 1]
    return parts[-1] if len(parts) % 2 else None


def _coalesce(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        present = [v for v in values if v is not None]
        return choose(present) if present else None

    return function


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _like(text[1:], pattern[1:])


def _add_months(start: date, months: int) -> date:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(start.day, last))


def _round(number: Any, places: int = 0) -> Any:
    rounded = Decimal(str(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return type(number)(rounded)


def _minus(left: Any, right: Any) -> Any:
    return left - (timedelta(days=right) if isinstance(left, date) else right)


def _plus(left: Any, right: Any) -> Any:
    return left + (timedelta(days=right) if isinstance(left, date) else right)


_WITH_NULLS: dict[str, Callable[..., Any]] = {
    "#single": _single,
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "greatest": _extreme(max),
    "least": _extreme(min),
    "isnull": lambda a: a is None,
    "isnotnull": lambda a: a is not None,
    "<=>": lambda a, b: a == b if a is not None and b is not None else a is b,
    "nullif": lambda a, b: None if a == b else a,
}

_STRICT: dict[str, Callable[..., Any]] = {
    "+": _plus,
    "-": _minus,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
    "%": lambda a, b: math.fmod(a, b) if b else None,
    "div": lambda a, b: int(a / b) if b else None,
    "negate": lambda a: -a,
    "not": lambda a: not a,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "like": _like,
    "upper": str.upper,
    "lower": str.lower,
    "trim": str.strip,
    "ltrim": str.lstrip,
    "rtrim": str.rstrip,
    "length": len,
    "substring": lambda s, start, size=None: s[start - 1 :][:size],
    "concat": lambda *parts: "".join(parts),
    "replace": lambda s, old, new="": s.replace(old, new),
    "left": lambda s, n: s[:n],
    "right": lambda s, n: s[-n:] if n else "",
    "locate": lambda part, s: s.find(part) + 1,
    "abs": abs,
    "round": _round,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "power": lambda a, b: float(a) ** float(b),
    "year": lambda d: d.year,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "quarter": lambda d: (d.month + 2) // 3,
    "date_add": lambda d, n: d + timedelta(days=n),
    "date_sub": lambda d, n: d - timedelta(days=n),
    "datediff": lambda a, b: (a - b).days,
    "add_months": _add_months,
}
