"""Draws what SQL has beside plain blocks: subqueries that are values, sets of groups, windows that
tell rows apart, first rows, PIVOT, UNPIVOT, VALUES and rows of arrays.

Every view has one answer: orders are total over the columns that are shown.
"""

from collections.abc import Callable, Sequence

from tests.generated.scalars import Column, Scalar
from tests.generated.tables import ARRAY, DATE, TEXT, WHOLE
from tests.generated.writer import EQUAL, KEYS, SCANS, From, Query, Writer, listed

FURTHER = 0.35
"""The share of query blocks that are of these kinds."""


class FurtherWriter(Writer):
    """Draws views with everything that SQL has."""

    def query(self, depth: int) -> Query:
        """A plain block, or one of these kinds."""
        if not self.chance(FURTHER):
            return super().query(depth)
        kinds: list[Callable[[int], Query]] = [
            *(self._grouping_sets, self._windowed, self._windowed, self._first_rows),
            *(self._first_rows, self._pivoted, self._unpivoted, self._collected),
        ]
        return self.rng.choice(kinds)(depth)

    # --- blocks ---------------------------------------------------------------------------------

    def _grouping_sets(self, depth: int) -> Query:
        source = self._from(depth)
        keys = list(dict.fromkeys(c for c in source.columns if c.kind in KEYS))
        if len(keys) < 2:
            return self._grouped(depth)
        chosen = self.rng.sample(keys, 2 if self.chance(0.8) or len(keys) < 3 else 3)
        items: dict[str, Scalar] = {}
        for key in chosen:
            items[self._output_name(Scalar(key.text, key.kind), items)] = Scalar(key.text, key.kind)
        if self.chance(0.4):
            items["level"] = Scalar(f"grouping({self.rng.choice(chosen).text})", WHOLE)
        for _ in range(self.rng.choice([1, 1, 2])):
            value = self.aggregate(source.columns)
            items[self._output_name(value, items)] = value
        having = " HAVING count(*) > 1" if self.chance(0.15) else ""
        rest = f" GROUP BY {self._sets([key.text for key in chosen])}{having}"
        return self._block(listed(items), items, source, self._filters(source, 0), rest)

    def _sets(self, keys: Sequence[str]) -> str:
        both = ", ".join(keys)
        return self.rng.choice(
            [
                *(f"ROLLUP ({both})", f"CUBE ({both})"),
                f"{keys[0]}, ROLLUP ({', '.join(keys[1:])})",
                f"GROUPING SETS ({', '.join(f'({key})' for key in keys)}, ())",
                f"GROUPING SETS (({both}), ({keys[1]}))",
            ]
        )

    def _windowed(self, depth: int) -> Query:
        """Functions of the place of a row, in an order of all columns that are shown."""
        source, shown = self._compared(depth)
        items = {c.name: Scalar(c.text, c.kind) for c in shown}
        for _ in range(self.rng.choice([1, 1, 2])):
            value = self._by_place(shown)
            items[self._output_name(value, items)] = value
        rest = ""
        if self.chance(0.3):
            function = self.rng.choice(["row_number()", "rank()", "dense_rank()", "count(*)"])
            sign = self.rng.choice(["<=", "=", ">"])
            rest = f" QUALIFY {function} OVER ({self._order(shown)}) {sign} {self._small()}"
        filters = [self.condition(shown)] if self.chance(0.2) else []
        return self._block(listed(items), items, source, filters, rest)

    def _compared(self, depth: int) -> tuple[From, list[Column]]:
        """A relation, and columns of it that are compared for equality, with names of their own."""
        source = self._source(depth, "", set())
        if depth > 0 and self.chance(0.3):
            self._add(source, self._source(0, "", source.aliases), commas=False)
        shown: dict[str, Column] = {}
        for column in self.rng.sample(source.columns, len(source.columns)):
            if column.kind in EQUAL and len(shown) < 3:
                shown.setdefault(column.name, column)
        return (source, list(shown.values())) if shown else self._compared(depth)

    def _order(self, columns: Sequence[Column], total: bool = True) -> str:
        """Partitions and an order."""
        mixed = self.rng.sample(list(columns), len(columns))
        cut = self.rng.randrange(len(mixed)) if self.chance(0.8) else 0
        by = f"PARTITION BY {', '.join(c.text for c in mixed[:cut])} " if cut else ""
        return f"{by}ORDER BY {self._sorted(mixed[cut:] if total else mixed[cut:][:1])}"

    def _sorted(self, columns: Sequence[Column]) -> str:
        directions = ["", "", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        return ", ".join(f"{c.text}{self.rng.choice(directions)}" for c in columns)

    def _small(self) -> int:
        return self.rng.choice([1, 1, 2, 3])

    def _by_place(self, columns: Sequence[Column]) -> Scalar:
        order, value = self._order(columns), self.rng.choice(list(columns))
        whole = self.one_of(columns, WHOLE)
        frame = self.rng.choice(
            [
                *("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING"),
                *("ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING", "RANGE UNBOUNDED PRECEDING"),
                "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            ]
        )
        functions = [
            *(Scalar(f"{f}() OVER ({order})", WHOLE) for f in ("row_number", "rank")),
            Scalar(f"ntile(2) OVER ({order})", WHOLE),
            Scalar(f"lag({value.text}) OVER ({order})", value.kind),
            Scalar(f"lead({value.text}, {self._small()}) OVER ({order})", value.kind),
            Scalar(f"first_value({value.text}) OVER ({order})", value.kind),
            Scalar(f"last_value({value.text}) OVER ({order} {frame})", value.kind),
            Scalar(f"max({value.text}) OVER ({order} {frame})", value.kind),
            Scalar(f"count({value.text}) OVER ({order} {frame})", WHOLE),
        ]
        if whole is not None:
            functions.append(Scalar(f"sum({whole.text}) OVER ({order} {frame})", WHOLE))
        return self.rng.choice(functions)

    def _first_rows(self, depth: int) -> Query:
        source, shown = self._compared(depth)
        items = {c.name: Scalar(c.text, c.kind) for c in shown}
        word = "DISTINCT " if self.chance(0.15) else ""
        mixed = self.rng.sample(shown, len(shown))
        offset = f" OFFSET {self._small()}" if self.chance(0.2) else ""
        by_name = [Column(c.name, c.kind) for c in mixed] if word else mixed
        rest = f" ORDER BY {self._sorted(by_name)} LIMIT {self._small() + 1}{offset}"
        filters = [self.condition(source.columns)] if self.chance(0.3) else []
        return self._block(f"{word}{listed(items)}", items, source, filters, rest)

    def _pivoted(self, depth: int) -> Query:
        source, shown = self._compared(depth)
        by, value = self.one_of(shown, WHOLE, TEXT), self.one_of(shown, WHOLE)
        if by is None or value is None or len(shown) < 2:
            return self._first_rows(depth)
        others = [c for c in shown if c not in (by, value)]
        items = {c.name: Scalar(c.text, c.kind) for c in others}
        inner = {**items, "pk": Scalar(by.text, by.kind), "pv": Scalar(value.text, WHOLE)}
        block = self._block(listed(inner), inner, source, self._filters(source, 0))
        first, second = [f"p{n}" for n in range(1, 9) if f"p{n}" not in items][:2]
        values = ("1", "2") if by.kind == WHOLE else ("'a'", "'b'")
        heads = [f"{values[0]} AS {first}", f"{values[1]} AS {second}"]
        aggregate = f"{self.rng.choice(['sum', 'min', 'max'])}(pv)"
        columns = [Column(name, each.kind) for name, each in items.items()]
        columns += [Column(first, WHOLE), Column(second, WHOLE)]
        sql = f"SELECT * FROM ({block.sql}) PIVOT ({aggregate} FOR pk IN ({', '.join(heads)}))"
        return Query(sql, tuple(columns))

    def _unpivoted(self, depth: int) -> Query:
        source = self._source(depth, "", set())
        whole = list({c.name: c for c in source.columns if c.kind == WHOLE}.values())
        kept = self.one_of(source.columns, TEXT, DATE)
        if len(whole) < 2:
            return self._first_rows(depth)
        items = {c.name: Scalar(c.text, c.kind) for c in ([kept] if kept else [])}
        named = [c.name for c in whole[:2]]
        inner = items | {c.name: Scalar(c.text, WHOLE) for c in whole[:2]}
        block = self._block(listed(inner), inner, source, self._filters(source, 0))
        nulls = self.rng.choice(["", "", " INCLUDE NULLS"])
        sql = f"SELECT * FROM ({block.sql}) UNPIVOT{nulls} (uv FOR un IN ({', '.join(named)}))"
        columns = [Column(name, each.kind) for name, each in items.items()]
        return Query(sql, (*columns, Column("un", TEXT), Column("uv", WHOLE)))

    def _collected(self, depth: int) -> Query:
        """The values of groups as arrays, and these as rows again."""
        source, shown = self._compared(depth)
        key, value = shown[0], shown[-1]
        function = self.rng.choice(["collect_list", "collect_set"])
        inner = {"gk": Scalar(key.text, key.kind), "gs": Scalar(f"{function}({value.text})", "")}
        rest = f" GROUP BY {key.text}"
        block = self._block(listed(inner), inner, source, self._filters(source, 0), rest)
        outer = self.rng.choice(["", "OUTER "])
        view = f"LATERAL VIEW {outer}posexplode(q.gs) rows_of AS rp, re"
        sql = f"SELECT q.gk, rows_of.rp, rows_of.re FROM ({block.sql}) q {view}"
        columns = Column("gk", key.kind), Column("rp", WHOLE), Column("re", value.kind)
        return Query(sql, columns)

    # --- rows -----------------------------------------------------------------------------------

    def _source(self, depth: int, alias: str, taken: set[str]) -> From:
        if not alias and self.chance(0.04):
            return self._constant_rows(taken)
        if not alias and self.chance(0.06):
            return self._with_array(taken)
        return super()._source(depth, alias, taken)

    def _with_array(self, taken: set[str]) -> From:
        """A table with an array of two of its columns, in which there may be NULLs."""
        source = self._named(self.rng.choice(list(self.relations)), self._free_alias(taken))
        [alias] = source.aliases
        whole = [c.name for c in source.columns if c.kind == WHOLE]
        if not whole:
            return source
        pair = f"array({self.rng.choice(whole)}, {self.rng.choice(whole)}) AS pair"
        names = ", ".join(c.name for c in source.columns)
        source.text = f"(SELECT {names}, {pair} FROM {source.text.split()[0]}) {alias}"
        source.columns.append(Column(f"{alias}.pair", ARRAY, alias))
        return source

    def _free_alias(self, taken: set[str]) -> str:
        return next(n for n in ("c", "d", "e", "f", "g2", "g3", "g4") if n not in taken)

    def _constant_rows(self, taken: set[str]) -> From:
        """VALUES, with names and values that tables have."""
        self.scans += 1
        alias = self._free_alias(taken)
        number = self.rng.choice(["cid", "oid", "item", "tier"])
        rows = [
            f"({self.literal(WHOLE)}, {self.literal(TEXT) if self.chance(0.8) else 'NULL'})"
            for _ in range(self.rng.randint(1, 3))
        ]
        columns = [Column(f"{alias}.{number}", WHOLE, alias), Column(f"{alias}.kind", TEXT, alias)]
        text = f"(VALUES (3, 'b'), {', '.join(rows)}) {alias}({number}, kind)"
        return From(text, columns, aliases={alias})

    def _from(self, depth: int, most: int = 3) -> From:
        if self.chance(0.06):
            return self._exploded(depth)
        if self.chance(0.06):
            return self._beside(depth)
        return super()._from(depth, most)

    def _beside(self, depth: int) -> From:
        """A relation beside a LATERAL subquery: a total, rows, or the first of them."""
        source = super()._source(depth, "", set())
        inner = self._source(0, "", source.aliases)
        pair, shown = self._pair(source, inner), self.one_of(inner.columns, *EQUAL)
        where = f" WHERE {pair}" if pair else ""
        kind, rest = WHOLE, ""
        match self.rng.randrange(3):
            case 1 if shown is not None:
                value, kind = shown.text, shown.kind
            case 2 if shown is not None:
                value, kind = shown.text, shown.kind
                rest = f" ORDER BY {self._sorted([shown])} LIMIT {self._small()}"
            case _:
                aggregate = self.aggregate(inner.columns)
                value, kind = aggregate.text, aggregate.kind
        query = f"LATERAL (SELECT {value} AS lv FROM {inner.text}{where}{rest}) beside"
        outer = self.chance(0.4)
        source.text += f" LEFT JOIN {query} ON TRUE" if outer else f" CROSS JOIN {query}"
        source.columns.append(Column("beside.lv", kind, "beside"))
        source.aliases.add("beside")
        return source

    def _exploded(self, depth: int) -> From:
        source = super()._source(depth, "", set())
        columns = [c.text for c in source.columns if c.kind == WHOLE]
        if not columns:
            return source
        first, second = self.rng.choice(columns), self.rng.choice(columns)
        if self.chance(0.25):
            rows = f"stack(2, {first}, 'a', {second}, 'b') rows_of AS re, rt"
            source.text += f" LATERAL VIEW {rows}"
            kinds = {"re": WHOLE, "rt": TEXT}
            source.columns += [Column(f"rows_of.{n}", k, "rows_of") for n, k in kinds.items()]
            return source
        array = self.rng.choice([f"array({first}, {second})", f"sequence(0, abs({first}))"])
        outer = "OUTER " if self.chance(0.4) else ""
        place = self.chance(0.4)
        names = "rp, re" if place else "re"
        source.text += (
            f" LATERAL VIEW {outer}{'pos' if place else ''}explode({array}) rows_of AS {names}"
        )
        source.columns += [Column(f"rows_of.{n}", WHOLE, "rows_of") for n in names.split(", ")]
        return source

    # --- subqueries as values -------------------------------------------------------------------

    def _items(self, source: From, count: int) -> dict[str, Scalar]:
        items = super()._items(source, count)
        if self.scans < SCANS and self.chance(0.12):
            value = self._scalar_subquery(source)
            if self.chance(0.3):
                test = self._membership(source, 0)
                value = Scalar(f"CASE WHEN {test} THEN 1 ELSE 0 END", WHOLE)
            items[self._output_name(value, items)] = value
        return items

    def _filters(self, source: From, depth: int) -> list[str]:
        found = super()._filters(source, depth)
        if self.scans < SCANS and self.chance(0.08):
            found.append(f"({self.condition(source.columns)} OR {self._membership(source, 0)})")
        if self.scans < SCANS and self.chance(0.08):
            value, column = self._scalar_subquery(source), self.one_of(source.columns, WHOLE)
            other = column.text if column is not None and value.kind == WHOLE else None
            sign = self.rng.choice(["=", ">", "<=", "<>"])
            found.append(f"{other} {sign} {value.text}" if other else f"{value.text} IS NOT NULL")
        return found

    def _scalar_subquery(self, source: From) -> Scalar:
        """One aggregate of a relation, or of its rows that go with a row around."""
        inner = self._source(0, "", source.aliases)
        value = self.aggregate(inner.columns)
        pair = self._equality(source, inner) if self.chance(0.75) else ""
        conditions = [pair] if pair else []
        if self.chance(0.3):
            conditions.append(self.comparison(inner.columns))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return Scalar(f"(SELECT {value.text} FROM {inner.text}{where})", value.kind)

    def _equality(self, source: From, right: From) -> str:
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
        return f"{b.text} = {a.text}"

    # --- aggregates -----------------------------------------------------------------------------

    def _plain_aggregate(self, columns: Sequence[Column]) -> Scalar:
        if not self.chance(0.25):
            return super()._plain_aggregate(columns)
        whole, text = self.one_of(columns, WHOLE), self.one_of(columns, TEXT)
        any_column = self.one_of(columns, *EQUAL)
        if whole is None or any_column is None:
            return super()._plain_aggregate(columns)
        return self.rng.choice(self._further_aggregates(columns, whole, any_column, text))

    def _further_aggregates(
        self, columns: Sequence[Column], whole: Column, any_column: Column, text: Column | None
    ) -> list[Scalar]:
        one, other = whole.text, (self.one_of(columns, WHOLE) or whole).text
        test, kind = self.comparison(columns), any_column.kind
        found = [
            *(Scalar(f"{f}({one})", "number") for f in ("stddev", "var_pop", "median")),
            *(Scalar(f"{f}({one})", WHOLE) for f in ("bit_xor", "bit_or")),
            *(Scalar(f"{f}({one}, {other})", "number") for f in ("corr", "covar_pop")),
            Scalar(f"percentile({one}, 0.25)", "number"),
            Scalar(f"mode({any_column.text})", kind),
            *(Scalar(f"{f}({any_column.text}, {one})", kind) for f in ("max_by", "min_by")),
            Scalar(f"sum({one}) FILTER (WHERE {test})", WHOLE),
            Scalar(f"sum(DISTINCT {one})", WHOLE),
            Scalar(f"count(DISTINCT {one}, {any_column.text})", WHOLE),
            Scalar(f"count_if({test})", WHOLE),
            Scalar(f"CASE WHEN every({test}) THEN 1 ELSE 0 END", WHOLE),
        ]
        if text is not None:
            order = f"WITHIN GROUP (ORDER BY {text.text})"
            found.append(Scalar(f"listagg({text.text}, ',') {order}", TEXT))
        return found
