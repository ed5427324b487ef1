"""Draws SQL views as people write them.

Joins by commas and by JOIN with ON or USING, outer joins, aggregates of everything joined to the
rows, common tables that are used twice, IN and EXISTS, window functions, set operations, and all
of it nested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.generated.scalars import Column, Scalar, Scalars
from tests.generated.tables import ARRAY, DATE, KEYLESS, KINDS, NUMBER, STRUCT, TEXT, WHOLE
from viewkeep.query.tables import Table

SCANS = 5
"""About how many tables a view reads; scripts grow with the square of it."""
EQUAL = (WHOLE, TEXT, DATE)
"""Kinds of columns that are compared for equality, and ordered."""
KEYS = (*EQUAL, ARRAY, STRUCT)
"""Kinds of columns that are compared for equality."""


@dataclass(frozen=True)
class Query:
    """A query and its columns, by their names alone."""

    sql: str
    columns: tuple[Column, ...]


@dataclass
class From:
    """A FROM under construction: its text, the columns in sight, and conditions for WHERE."""

    text: str
    columns: list[Column]
    where: list[str] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)


def relations_of(tables: Mapping[str, Table]) -> dict[str, tuple[Column, ...]]:
    """The columns of tables and views that a view can read."""
    return {
        name: tuple(
            Column(f.name, KINDS[f.type.name]) for f in table.columns if f.name != KEYLESS.get(name)
        )
        for name, table in tables.items()
    }


class Writer(Scalars):
    """Draws views over relations; `common` are the common tables in sight."""

    def __init__(self, rng: Random, relations: Mapping[str, tuple[Column, ...]]) -> None:
        super().__init__(rng)
        self.relations = dict(relations)
        self.common: dict[str, tuple[Column, ...]] = {}
        self.scans = 0

    def view(self) -> Query:
        """A whole view."""
        if self.chance(0.2):
            return self._with_common_tables()
        return self.query(self.rng.choice([1, 1, 2, 2, 3]))

    def query(self, depth: int) -> Query:
        """A query block or a set operation."""
        match self.rng.randrange(12):
            case 0 | 1:
                return self._set_operation(depth)
            case 2:
                return self._aggregated(self._from(depth), [])
            case 3 | 4 | 5 | 6:
                return self._grouped(depth)
        return self._plain(depth)

    # --- query blocks ---------------------------------------------------------------------------

    def _plain(self, depth: int, distinct: float = 0.15) -> Query:
        source = self._from(depth)
        items = self._items(source, self.rng.randint(1, 4))
        word = "DISTINCT " if self.chance(distinct) else ""
        return self._block(f"{word}{listed(items)}", items, source, self._filters(source, depth))

    def _items(self, source: From, count: int) -> dict[str, Scalar]:
        items: dict[str, Scalar] = {}
        for _ in range(count):
            value = self.value(source.columns)
            items[self._output_name(value, items)] = value
        if self.chance(0.15):
            value = self._over(source.columns)
            items[self._output_name(value, items)] = value
        return items

    def _over(self, columns: Sequence[Column]) -> Scalar:
        """A window function whose value is determined: rows equal in its order have the same."""
        partition, order = self.one_of(columns, *KEYS), self.one_of(columns, *EQUAL)
        value = self.one_of(columns, *EQUAL)
        if order is None or value is None or partition is None:
            return Scalar("count(*) OVER ()", WHOLE)
        function, kind = self.rng.choice(
            [
                *(("rank()", WHOLE), ("dense_rank()", WHOLE), (f"count({value.text})", WHOLE)),
                *((f"max({value.text})", value.kind), (f"min({value.text})", value.kind)),
            ]
        )
        by = f"PARTITION BY {partition.text} " if self.chance(0.8) else ""
        direction = self.rng.choice(["", " DESC", " NULLS LAST"])
        return Scalar(f"{function} OVER ({by}ORDER BY {order.text}{direction})", kind)

    def _grouped(self, depth: int) -> Query:
        source = self._from(depth)
        keys: dict[str, Scalar] = {}
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            column = self.one_of(source.columns, *KEYS)
            if column is not None:
                key = Scalar(column.text, column.kind)
                if self.chance(0.2):
                    key = self.computed(source.columns, column)
                if key.kind != NUMBER and key.text not in {k.text for k in keys.values()}:
                    keys[self._output_name(key, keys)] = key
        return self._aggregated(source, list(keys.items()), depth)

    def _aggregated(
        self, source: From, keys: Sequence[tuple[str, Scalar]], depth: int = 0
    ) -> Query:
        """Aggregates by some keys, which people mostly select as well; by none, of everything."""
        items = {name: key for name, key in keys if len(keys) == 1 or self.chance(0.85)}
        for _ in range(self.rng.randint(1, 3)):
            value = self.aggregate(source.columns)
            items[self._output_name(value, items)] = value
        where = self._filters(source, depth)
        group = f" GROUP BY {', '.join(key.text for _, key in keys)}" if keys else ""
        having = ""
        if self.chance(0.25 if keys else 0.08):
            kept = self.aggregate(source.columns)
            test = f"{kept.text} > {self.literal(WHOLE)}"
            if kept.kind in (TEXT, DATE):
                test = f"{kept.text} IS NOT NULL"
            having = f" HAVING {test if self.chance(0.8) else 'count(*) > 1'}"
        return self._block(listed(items), items, source, where, group + having)

    def _block(
        self,
        select: str,
        items: Mapping[str, Scalar],
        source: From,
        filters: Sequence[str],
        rest: str = "",
    ) -> Query:
        conditions = [*source.where, *filters]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        columns = tuple(Column(name, value.kind) for name, value in items.items())
        return Query(f"SELECT {select} FROM {source.text}{where}{rest}", columns)

    def _output_name(self, value: Scalar, taken: Iterable[str]) -> str:
        name = _own_name(value) or self.rng.choice(["v", "n", "total", "top"])
        used = {each.lower() for each in taken}
        return next(n for n in (name, *(f"{name}{i}" for i in range(2, 99))) if n not in used)

    def _with_common_tables(self) -> Query:
        """A common table that is read twice, or two of which one reads the other."""
        outer = self.common
        first = self.query(1)
        self.common = {"base": first.columns}
        texts = [f"base AS ({first.sql})"]
        if self.chance(0.3):
            second = self.query(1)
            self.common["upper_part"] = second.columns
            texts.append(f"upper_part AS ({second.sql})")
        self.scans = 0
        body = self._twice("base") if self.chance(0.6) else self.query(2)
        self.common = outer
        return Query(f"WITH {', '.join(texts)} {body.sql}", body.columns)

    def _twice(self, name: str) -> Query:
        """A block that reads a common table beside itself or beside an aggregate of it."""
        columns = self.common[name]
        source = self._named(name, "x")
        column = self.one_of(columns, *KEYS)
        if column is None or self.chance(0.35):
            self._add_total(source, name, columns, "y")
        else:
            pair = f"x.{column.name} = y.{column.name}"
            source.columns += [Column(f"y.{c.name}", c.kind, "y") for c in columns]
            if self.chance(0.5):
                source.text += f", {name} y"
                source.where.append(pair)
            else:
                source.text += f" {self.rng.choice(['JOIN', 'LEFT JOIN'])} {name} y ON {pair}"
        if self.chance(0.5):
            items = self._items(source, self.rng.randint(2, 4))
            return self._block(listed(items), items, source, self._filters(source, 0))
        key = self.one_of(source.columns, *KEYS)
        keys = [("k", Scalar(key.text, key.kind))] if key else []
        return self._aggregated(source, keys)

    # --- set operations -------------------------------------------------------------------------

    def _set_operation(self, depth: int) -> Query:
        drawn = [WHOLE, WHOLE, WHOLE, TEXT, TEXT, ARRAY, STRUCT]
        kinds = [self.rng.choice(drawn) for _ in range(self.rng.choice([1, 1, 2]))]
        names = [f"u{i}" for i in range(len(kinds))]
        count = 3 if self.chance(0.15) else 2
        sides = [self._side(depth - 1, kinds, names) for _ in range(count)]
        words = ["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]
        words += ["EXCEPT ALL", "INTERSECT ALL"]
        sql = sides[0]
        for side in sides[1:]:
            sql += f" {self.rng.choice(words if count == 2 else words[:3])} {side}"
        columns = tuple(Column(n, k) for n, k in zip(names, kinds, strict=True))
        return Query(sql, columns)

    def _side(self, depth: int, kinds: Sequence[str], names: Sequence[str]) -> str:
        source = self._from(max(depth, 0), most=2)
        items = {}
        for name, kind in zip(names, kinds, strict=True):
            column = self.one_of(source.columns, kind)
            text = column.text if column else self.literal(kind)
            items[name] = Scalar(text, kind)
        return self._block(listed(items), items, source, self._filters(source, 0)).sql

    # --- FROM -----------------------------------------------------------------------------------

    def _from(self, depth: int, most: int = 3) -> From:
        left = SCANS - self.scans
        count = min(self.rng.choice([1, 1, 2, 2, 2, 3]), most, max(left, 1))
        source = self._source(depth, "", set())
        commas = self.chance(0.4)
        for _ in range(count - 1):
            if self.chance(0.2):
                self._add_total(source, *self._total_of(source), commas=commas)
            else:
                self._add(source, self._source(depth, "", source.aliases), commas)
        return source

    def _source(self, depth: int, alias: str, taken: set[str]) -> From:
        """A table, a common table, a lower view, or a query in brackets."""
        names = [*self.relations, *self.common, *self.common]
        name = self.rng.choice(names)
        if depth > 0 and self.scans < SCANS - 1 and self.chance(0.25):
            inner = self.query(depth - 1)
            spaced = _free("`a = q`", taken) if self.scans % 5 == 4 else _free("q", taken)
            alias = alias or spaced
            columns = [Column(f"{alias}.{c.name}", c.kind, alias) for c in inner.columns]
            return From(f"({inner.sql}) {alias}", columns, aliases={alias})
        return self._named(name, alias or _free(name[0], taken))

    def _named(self, name: str, alias: str) -> From:
        self.scans += 1
        found = self.common.get(name) or self.relations[name]
        columns = [Column(f"{alias}.{c.name}", c.kind, alias) for c in found]
        text = f"{name} AS {alias}" if self.chance(0.1) else f"{name} {alias}"
        return From(text, columns, aliases={alias})

    def _add(self, source: From, right: From, commas: bool) -> None:
        """Join one more relation."""
        shared = self._shared(source, right)
        merged = {c.text for c in source.columns if "." not in c.text}
        if shared and not commas and (merged & {c.name for c in right.columns} or self.chance(0.4)):
            if not (merged & {c.name for c in right.columns}) - {c.name for c in shared}:
                self._add_using(source, right, shared, merged)
            return
        if merged & {c.name for c in right.columns}:
            return  # a name without its table would no longer be clear
        pair = self._pair(source, right)
        source.aliases |= right.aliases
        if commas:
            source.text += f", {right.text}"
            source.where += [pair] if pair else []
            source.columns += right.columns
            return
        words = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
        word = self.rng.choice(words if pair else ["CROSS JOIN"])
        before = list(source.columns)
        source.columns += right.columns
        condition = pair
        if pair and self.chance(0.2):
            condition += f" AND {self.comparison(self.rng.choice([before, right.columns]))}"
        source.text += f" {word} {right.text}" + (f" ON {condition}" if pair else "")

    def _shared(self, source: From, right: From) -> list[Column]:
        """Columns of the right side that have one namesake of their kind on the left."""
        found = []
        for column in right.columns:
            same = [c for c in source.columns if c.name == column.name]
            if len(same) == 1 and same[0].kind == column.kind in KEYS:
                found.append(column)
        return found

    def _add_using(
        self, source: From, right: From, shared: Sequence[Column], merged: set[str]
    ) -> None:
        needed = [c for c in shared if c.name in merged]
        names = [c.name for c in needed] or [self.rng.choice(list(shared)).name]
        word = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        source.text += f" {word} {right.text} USING ({', '.join(names)})"
        kept = [c for c in source.columns if c.name not in names]
        joined = [Column(c.name, c.kind) for c in right.columns if c.name in names]
        source.columns = [*joined, *kept, *(c for c in right.columns if c.name not in names)]
        source.aliases |= right.aliases

    def _pair(self, source: From, right: From) -> str:
        """An equality, mostly of columns with the same name; seldom another comparison."""
        pairs = [
            (a, b)
            for a in source.columns
            for b in right.columns
            if a.kind == b.kind and a.kind in KEYS
        ]
        namesakes = [(a, b) for a, b in pairs if a.name == b.name]
        if not pairs:
            return ""
        a, b = self.rng.choice(namesakes if namesakes and self.chance(0.75) else pairs)
        signs = ["<>", "<=>"] if a.kind in (ARRAY, STRUCT) else ["<", ">=", "<>", "<=>"]
        sign = "=" if self.chance(0.9) else self.rng.choice(signs)
        sides = (a.text, b.text) if self.chance(0.5) else (b.text, a.text)
        return f"{sides[0]} {sign} {sides[1]}"

    def _total_of(self, source: From) -> tuple[str, tuple[Column, ...], str]:
        """What an aggregate of everything is taken of."""
        known = self.common | self.relations
        name = self.rng.choice(list(known))
        return name, known[name], _free("g", source.aliases)

    def _add_total(
        self,
        source: From,
        name: str,
        columns: Sequence[Column],
        alias: str,
        commas: bool = False,
    ) -> None:
        """Join one row of aggregates to all rows, or to those that have its value."""
        self.scans += 1
        inner: dict[str, Scalar] = {}
        for _ in range(self.rng.choice([1, 1, 2])):
            value = self.aggregate([Column(c.name, c.kind) for c in columns])
            inner[self._output_name(value, inner)] = value
        where = f" WHERE {self.comparison(columns)}" if self.chance(0.25) else ""
        text = f"(SELECT {listed(inner)} FROM {name}{where}) {alias}"
        added = [Column(f"{alias}.{n}", v.kind, alias) for n, v in inner.items()]
        merged = {c.text for c in source.columns if "." not in c.text}
        if merged & {c.name for c in added}:
            return
        right = From(text, added, aliases={alias})
        pair = self._pair(source, right) if self.chance(0.4) else ""
        source.columns += added
        source.aliases.add(alias)
        if commas:
            source.text += f", {text}"
            source.where += [pair] if pair else []
        elif pair:
            source.text += f" {self.rng.choice(['JOIN', 'JOIN', 'LEFT JOIN'])} {text} ON {pair}"
        else:
            source.text += f" CROSS JOIN {text}"

    # --- WHERE ----------------------------------------------------------------------------------

    def _filters(self, source: From, depth: int) -> list[str]:
        found = [
            self.condition(source.columns) for _ in range(self.rng.choice([0, 0, 0, 0, 1, 1, 2]))
        ]
        if self.scans < SCANS and self.chance(0.22):
            found.append(self._membership(source, depth))
        self.rng.shuffle(found)
        return found

    def _membership(self, source: From, depth: int) -> str:
        inner = self._source(min(depth, 1), "", source.aliases)
        pair = self._pair(source, inner)
        negation = "NOT " if self.chance(0.45) else ""
        more = f" AND {self.comparison(inner.columns)}" if self.chance(0.3) else ""
        if pair and self.chance(0.5):
            item = self.rng.choice(["1", "*"])
            return f"{negation}EXISTS (SELECT {item} FROM {inner.text} WHERE {pair}{more})"
        matches = [
            (a, b)
            for a in source.columns
            for b in inner.columns
            if a.kind == b.kind and a.kind in KEYS
        ]
        if not matches:
            return f"EXISTS (SELECT 1 FROM {inner.text})"
        a, b = self.rng.choice(matches)
        where = f" WHERE {more.removeprefix(' AND ')}" if more else ""
        item = (
            b.text
            if b.kind in (ARRAY, STRUCT) or self.chance(0.85)
            else f"{self.rng.choice(['min', 'max'])}({b.text})"
        )
        return f"{a.text} {negation}IN (SELECT {item} FROM {inner.text}{where})"


def listed(items: Mapping[str, Scalar]) -> str:
    """The select list; an alias where the name is not the column's own."""
    return ", ".join(
        value.text if _own_name(value) == name else f"{value.text} AS {name}"
        for name, value in items.items()
    )


def _own_name(value: Scalar) -> str:
    """The name that a column has without an alias; nothing for other expressions."""
    return value.text.rpartition(".")[2] if value.text.replace(".", "").isidentifier() else ""


def _free(name: str, taken: set[str]) -> str:
    others = (f"{name[:-1]}{i}`" if name.endswith("`") else f"{name}{i}" for i in range(2, 99))
    return next(n for n in (name, *others) if n not in taken)
