"""Scalar SQL as people write it: values, aggregates and conditions over columns in sight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.generated.tables import ARRAY, DATE, NUMBER, STRUCT, TEXT, WHOLE


@dataclass(frozen=True)
class Column:
    """A column in sight: what it is written as, what kind of values it has, whose it is."""

    text: str
    kind: str
    owner: str = ""

    @property
    def name(self) -> str:
        """The name without its table."""
        return self.text.rpartition(".")[2]


@dataclass(frozen=True)
class Scalar:
    """An expression and the kind of its values."""

    text: str
    kind: str


class Scalars:
    """Draws expressions."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        """True in so many cases of one."""
        return self.rng.random() < share

    def literal(self, kind: str) -> str:
        """A constant among the values that tables have."""
        match kind:
            case "whole":
                return str(self.rng.randint(-1, 4))
            case "number":
                return self.rng.choice(["0.5", "1.25", "-0.5", "0"])
            case "text":
                return self.rng.choice(["'a'", "'b'", "'c'", "''"])
            case "array":
                return self.rng.choice(["array(0)", "array(0, 1)", "array(1, NULL)"])
            case "struct":
                return "(SELECT min(place) FROM visits WHERE place.x = 1)"
        return f"date '2024-02-{self.rng.choice([28, 29])}'"

    def one_of(self, columns: Sequence[Column], *kinds: str) -> Column | None:
        """A column of one of these kinds."""
        fitting = [each for each in columns if not kinds or each.kind in kinds]
        return self.rng.choice(fitting) if fitting else None

    # --- values ---------------------------------------------------------------------------------

    def value(self, columns: Sequence[Column]) -> Scalar:
        """Mostly a column, sometimes computed of one or two."""
        column = self.rng.choice(list(columns))
        if self.chance(0.6):
            return Scalar(column.text, column.kind)
        return self.computed(columns, column)

    def computed(self, columns: Sequence[Column], column: Column) -> Scalar:
        """An expression that reads a column."""
        match column.kind:
            case "text":
                return self._of_text(columns, column)
            case "array":
                test = self.comparison(columns)
                return self.rng.choice(
                    [
                        Scalar(f"coalesce({column.text}, array(0))", ARRAY),
                        Scalar(f"CASE WHEN {test} THEN {column.text} END", ARRAY),
                    ]
                )
            case "struct":
                test = self.comparison(columns)
                return self.rng.choice(
                    [
                        Scalar(f"{column.text}.x", WHOLE),
                        Scalar(f"upper({column.text}.y)", TEXT),
                        Scalar(f"CASE WHEN {test} THEN {column.text} END", STRUCT),
                    ]
                )
            case "date":
                return self.rng.choice(
                    [
                        Scalar(f"year({column.text})", WHOLE),
                        Scalar(f"coalesce({column.text}, date '2024-01-01')", DATE),
                    ]
                )
        return self._of_number(columns, column)

    def _of_text(self, columns: Sequence[Column], column: Column) -> Scalar:
        test = self.comparison(columns)
        number = (self.one_of(columns, WHOLE) or column).text
        return self.rng.choice(
            [
                Scalar(f"concat({number}, '-', {column.text})", TEXT),
                Scalar(f"{column.text} || {number}", TEXT),
                Scalar(f"coalesce({column.text}, 'none')", TEXT),
                Scalar(f"upper({column.text})", TEXT),
                Scalar(f"CASE WHEN {test} THEN {column.text} ELSE 'other' END", TEXT),
                Scalar(f"CASE {column.text} WHEN 'a' THEN 1 WHEN 'b' THEN 2 END", WHOLE),
            ]
        )

    def _of_number(self, columns: Sequence[Column], column: Column) -> Scalar:
        other = self.one_of(columns, WHOLE) or column
        both = NUMBER if NUMBER in (column.kind, other.kind) else WHOLE
        ways: list[Callable[[], Scalar]] = [
            lambda: Scalar(f"{column.text} + {self.literal(WHOLE)}", column.kind),
            lambda: Scalar(f"{column.text} * 2", column.kind),
            lambda: Scalar(f"{column.text} - {other.text}", both),
            lambda: Scalar(f"{column.text} * {other.text}", both),
            lambda: Scalar(f"coalesce({column.text}, 0)", column.kind),
            lambda: Scalar(f"{column.text} * 1.0 / nullif({other.text}, 0)", NUMBER),
            lambda: Scalar(f"abs({column.text})", column.kind),
            lambda: (
                Scalar(f"({other.text} {self.rng.choice('&|^')} ~{other.text} * 3)", WHOLE)
                if other.kind == WHOLE
                else Scalar(f"-{column.text}", column.kind)
            ),
            lambda: Scalar(
                f"CASE WHEN {self.comparison(columns)} THEN {column.text} ELSE 0 END", column.kind
            ),
        ]
        return self.rng.choice(ways)()

    # --- aggregates -----------------------------------------------------------------------------

    def aggregate(self, columns: Sequence[Column]) -> Scalar:
        """An aggregate, sometimes inside arithmetic, sometimes two in one expression."""
        first = self._plain_aggregate(columns)
        if first.kind in (TEXT, DATE) or self.chance(0.75):
            return first
        second = self._plain_aggregate(columns)
        if second.kind in (TEXT, DATE):
            second = Scalar("count(*)", WHOLE)
        both = NUMBER if NUMBER in (first.kind, second.kind) else WHOLE
        return self.rng.choice(
            [
                Scalar(f"{first.text} * 0.5", NUMBER),
                Scalar(f"coalesce({first.text}, 0)", first.kind),
                Scalar(f"{first.text} + {second.text}", both),
                Scalar(f"{first.text} * 1.0 / nullif({second.text}, 0)", NUMBER),
                Scalar(f"CASE WHEN {first.text} > 1 THEN {second.text} ELSE 0 END", second.kind),
            ]
        )

    def _plain_aggregate(self, columns: Sequence[Column]) -> Scalar:
        column = self.one_of(columns, WHOLE, NUMBER)
        if column is None or self.chance(0.2):
            return Scalar("count(*)", WHOLE)
        argument = self._argument(columns, column)
        match self.rng.randrange(8):
            case 0:
                return Scalar(f"avg({argument.text})", NUMBER)
            case 1 | 2:
                function = self.rng.choice(["min", "max"])
                any_column = self.rng.choice([c for c in columns if c.kind not in (ARRAY, STRUCT)])
                return Scalar(f"{function}({any_column.text})", any_column.kind)
            case 3:
                return Scalar(f"count({self.rng.choice(list(columns)).text})", WHOLE)
            case 4:
                counted = self.one_of(columns, WHOLE, TEXT, DATE, ARRAY, STRUCT) or column
                return Scalar(f"count(DISTINCT {counted.text})", WHOLE)
        return Scalar(f"sum({argument.text})", argument.kind)

    def _argument(self, columns: Sequence[Column], column: Column) -> Scalar:
        if self.chance(0.6):
            return Scalar(column.text, column.kind)
        if self.chance(0.4):
            test = self.comparison(columns)
            return Scalar(f"CASE WHEN {test} THEN {column.text} ELSE 0 END", column.kind)
        other = self.one_of(columns, WHOLE) or column
        both = NUMBER if NUMBER in (column.kind, other.kind) else WHOLE
        return Scalar(f"{column.text} * {other.text}", both)

    # --- conditions -----------------------------------------------------------------------------

    def condition(self, columns: Sequence[Column]) -> str:
        """A comparison, sometimes two of them joined by OR, sometimes denied."""
        first = self.comparison(columns)
        match self.rng.randrange(8):
            case 0:
                return f"({first} OR {self.comparison(columns)})"
            case 1:
                return f"NOT ({first})"
        return first

    def comparison(self, columns: Sequence[Column]) -> str:
        """A column beside a constant or another column."""
        column = self.rng.choice(list(columns))
        if column.kind == NUMBER:
            return f"{column.text} {self.rng.choice(['>', '<'])} 0.3"
        if column.kind == STRUCT:
            return self._comparison_of_structs(columns, column)
        literal = self.literal(column.kind)
        if column.kind == ARRAY:
            return self._comparison_of_arrays(columns, column)
        match self.rng.randrange(9):
            case 0:
                return f"{column.text} IS {self.rng.choice(['', 'NOT '])}NULL"
            case 1:
                return f"{column.text} IN ({literal}, {self.literal(column.kind)})"
            case 2:
                return f"{column.text} BETWEEN {literal} AND {self.literal(column.kind)}"
            case 3 if column.kind == TEXT:
                return self._like(column)
            case 3:
                others = [c for c in columns if c.kind in (WHOLE, TEXT)]
                if column.kind == WHOLE and others:
                    return self._comparison_of_rows(column, self.rng.choice(others))
            case 4 | 5:
                others = [c for c in columns if c.kind == column.kind and c != column]
                if others:
                    sign = self.rng.choice(["=", "<>", "<", ">="])
                    return f"{column.text} {sign} {self.rng.choice(others).text}"
            case 6:
                return f"coalesce({column.text}, {literal}) <> {self.literal(column.kind)}"
        return f"{column.text} {self.rng.choice(['=', '<>', '<', '>='])} {literal}"

    def _like(self, column: Column) -> str:
        """A pattern, or several of which any or all fit."""
        if self.chance(0.4):
            return f"{column.text} LIKE '{self.rng.choice(['a', 'b'])}%'"
        patterns = ", ".join(self.rng.sample(["'a%'", "'%b'", "'_'", "'c'", "NULL"], 2))
        words = self.rng.choice(["LIKE ANY", "LIKE ALL", "NOT LIKE ANY", "NOT LIKE ALL"])
        return f"{column.text} {words} ({patterns})"

    def _comparison_of_rows(self, first: Column, second: Column) -> str:
        """Two values at once."""
        rows = [f"({self.literal(WHOLE)}, {self.literal(second.kind)})" for _ in range(2)]
        pair = f"({first.text}, {second.text})"
        if self.chance(0.5):
            return f"{pair} IN ({', '.join(rows)})"
        return f"{pair} {self.rng.choice(['=', '<>'])} {rows[0]}"

    def _comparison_of_arrays(self, columns: Sequence[Column], column: Column) -> str:
        """Whether an array equals another one, or comes before it."""
        others = [c.text for c in columns if c.kind == ARRAY and c != column]
        other = self.rng.choice([*others, self.literal(ARRAY)])
        match self.rng.randrange(3):
            case 0:
                return f"{column.text} IS {self.rng.choice(['', 'NOT '])}NULL"
            case 1:
                return f"{column.text} IN ({other}, {self.literal(ARRAY)})"
        return f"{column.text} {self.rng.choice(['=', '<>', '<=>', '<', '>='])} {other}"

    def _comparison_of_structs(self, columns: Sequence[Column], column: Column) -> str:
        """Whether a struct equals another one, or what is in it; structs are not ordered here."""
        others = [c.text for c in columns if c.kind == STRUCT and c != column]
        match self.rng.randrange(4):
            case 0:
                return f"{column.text} IS {self.rng.choice(['', 'NOT '])}NULL"
            case 1:
                return f"{column.text}.x {self.rng.choice(['=', '>'])} {self.literal(WHOLE)}"
            case 2 if others:
                return f"{column.text} IN ({', '.join(others[:2])})"
        if not others:
            return f"{column.text}.y >= {self.literal(TEXT)}"
        sign = self.rng.choice(["=", "<>", "<=>"])
        return f"{column.text} {sign} {self.rng.choice(others)}"
