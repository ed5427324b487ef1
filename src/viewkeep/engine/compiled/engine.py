"""The compiled engine: a trigger program as machine code over codes of 64 bits.

It does what the reference engine does, after every update, for rings whose elements are words of
64 bits. What it cannot hold raises `Unfit` before anything has changed; a sum that leaves 64 bits
is taken back and raises `Overflow`.
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from viewkeep.engine.compiled.extremes import Extreme
from viewkeep.engine.compiled.formats import BY_DICTIONARY, NULL, PLAIN, TEXTS, whole_again
from viewkeep.engine.compiled.instance import Instance, Row
from viewkeep.engine.compiled.layout import BASE, LOADING, SIZE, UPDATES, Store
from viewkeep.engine.compiled.llvm.translate import OUTSIDE, TOO_LARGE
from viewkeep.engine.compiled.memory import blocks, words_at
from viewkeep.engine.compiled.partitions import CompiledPartitions
from viewkeep.engine.compiled.reading import PORTION, Observed, OutputReader
from viewkeep.engine.compiled.rings import Overflow, Unfit
from viewkeep.engine.compiled.table_intake import Batches, Columns
from viewkeep.engine.compiled.values import Coder
from viewkeep.engine.interpreter.partitions import Layout
from viewkeep.errors import ViewkeepError
from viewkeep.plan.payload import Payload
from viewkeep.plan.program import Map, Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings import INTEGERS, Relation

Change = tuple[int, Row, Any]
FEW = 1 << 10
"""Values that may be in the dictionary in vain, however little data there is."""

OFTEN = 256
"""Changes after which the dictionary is looked at again."""


class CompiledEngine(Instance):
    """A program that is loaded, updated and read.

    Triggers run in machine code; single rows and tables may come without a call for each row.
    """

    name = "compiled"

    def __init__(
        self,
        program: Program,
        payload: Payload,
        query: ConjunctiveQuery,
        coder: Coder | None = None,
        keep_inputs: bool = True,
    ) -> None:
        super().__init__(program, payload, query, coder, keep_inputs)
        self.counter = [0]
        self._until_tidy = 0
        self._parameters = {t.atom: t.parameters for t in program.triggers}
        self.triggers = {atom: self._compiled_trigger(atom) for atom in self._parameters}
        self._output = OutputReader(self)
        self.partitions: CompiledPartitions | None = None
        if program.splits:
            self.partitions = CompiledPartitions(program, self.state, self.coder, self.domains)
            self.state.words[BASE] = 1
            self.call("set_base")

    def single(self, relation: str) -> Callable[[Row, int], bool | None] | None:
        """What takes single rows of a relation (see `Runner.singles`), if there is such a thing."""
        return self.inlets.single(relation, self.code, self.state.address)

    def updater(
        self, python: Callable[..., None], on_overflow: Callable[..., None]
    ) -> tuple[Callable[..., None], list[Any]]:
        """`update` in machine code, and what it is bound to (see `Inlets.update`)."""
        return self.inlets.update(self.code, python, on_overflow)

    def connect(self, link: list[Any], relation: str) -> int:
        """Have rows of a relation taken by machine code, while this address stands in the link."""
        place, mask = self.inlets.place(relation), self.inlets.mask(relation)
        link[place : place + 2] = [relation, mask]
        if mask:
            texts = self.coder.texts
            link[3:5] = [texts.address, texts.single_address()]
        return self.state.address

    def takes_singles(self, relation: str) -> bool:
        """Whether single rows of a relation need no Python."""
        return self.inlets.mask(relation) is not None

    def updates(self) -> ctypes.c_int64:
        """The counter of rows that machine code has taken."""
        return ctypes.c_int64.from_address(self.state.address + 8 * UPDATES)

    def batches(
        self, relation: str, rows: Any, multiplicities: Any, loading: bool = False
    ) -> Batches | None:
        """A table as columns of changes, atom by atom; None if it must be read row by row."""
        batches = self.inlets.batches(relation, rows, multiplicities, loading)
        self.check_types()
        return batches

    def forget_overflow(self) -> None:
        """Clear the mark of an overflow that was undone."""
        self.state.words[0] = 0

    def can_load(self, atom: int, columns: Columns) -> bool:
        """Whether rows can be loaded as they are: heavy and light parts need each only once."""
        if self.partitions is None or not columns:
            return True
        keys = columns[: len(self._part_keys[atom])]
        order = np.lexsort(keys)
        same = [column[order][1:] == column[order][:-1] for column in keys]
        counts = columns[len(keys) :]
        return not np.logical_and.reduce(same).any() and all(c.all() for c in counts[:1])

    @property
    def is_empty(self) -> bool:
        """Whether no map has an entry."""
        words = self.state.words
        return not any(
            words[table.at + 2] if table.key else words[table.at : table.at + table.stride].any()
            for table in self.source.memory.tables
        )

    @property
    def steps(self) -> int:
        """The steps counted before, by the reference engine: this one counts none."""
        return self.counter[0]

    # --- updates ----------------------------------------------------------------------------------

    def _compiled_trigger(self, atom: int) -> Callable[[Row, Any], None]:
        def update(row: Row, payload: Any) -> None:
            self.apply([(atom, row, payload)])

        return update

    def apply(self, changes: Iterable[Change]) -> None:
        """Run the triggers of changes one after another; all of them, or none."""
        self.apply_columns(self.encode_all(changes))

    def encode_all(self, changes: Iterable[Change]) -> list[tuple[int, Columns]]:
        """Changes as batches of codes, atom by atom."""
        return [
            (atom, self.encode(atom, [(row, payload) for _, row, payload in group]))
            for atom, group in groupby(changes, itemgetter(0))
        ]

    @property
    def observes(self) -> bool:
        """Whether batches tell how they change the output: what is there now less the change is
        what was there before, unless sums are rounded, or values are kept in order."""
        exact = "f" not in self.shape.kinds and self.extremes is None
        return exact and not self.program.inputs

    def apply_observed(self, batches: Sequence[tuple[int, Columns]]) -> Observed:
        """Run batches, all or none; how they change the output."""

        def run(name: str, columns: Columns) -> int:
            places = np.array([column.ctypes.data for column in columns], np.int64)
            observe = self._output.observing(int(name.removeprefix("batch_")))
            return observe(self.state.address, places.ctypes.data, len(columns[0]))

        return self._output.observe(lambda: self.apply_columns(batches, run))

    def apply_columns(
        self,
        batches: Sequence[tuple[int, Columns]],
        run: Callable[[str, Columns], int] | None = None,
    ) -> None:
        """Run batches of coded changes, atom by atom; all of them, or none."""
        run, batches_run = run or self.run, []
        for atom, columns in batches:
            batches_run.append((atom, columns))
            if marks := run(f"batch_{atom}", columns):
                self._undo_batches(batches_run)
                raise self._problem(marks, batches)

    def _undo_batches(self, batches_run: list[tuple[int, Columns]]) -> None:
        """Words wrap, so that taking the same changes away gives back what was there exactly."""
        for atom, columns in reversed(batches_run):
            arity = len(self._parameters[atom])
            with np.errstate(over="ignore"):
                self.run(f"batch_{atom}", [*columns[:arity], *(-c for c in columns[arity:])])
        self.forget_overflow()

    def _problem(self, marks: int, batches: Sequence[tuple[int, Columns]]) -> Unfit:
        """What takes numbers that were too large, or no multiples of their unit."""
        if marks & OUTSIDE:
            return self.refit(batches)
        if marks & TOO_LARGE:
            return Overflow("a sum or a product does not fit 64 bits")
        return self.wider()

    # --- the dictionary ---------------------------------------------------------------------------

    def tidy(self, changes: int) -> None:
        """After so many changes, forget values that are in no table, if there are many of them.

        A look at all tables is paid for by the values that came since the last one, or by half of
        all values being forgotten.
        """
        self._until_tidy -= changes
        if self._until_tidy > 0:
            return
        self._until_tidy = OFTEN
        if len(self.coder) > FEW + self._most_in_vain():
            self.forget_unused()
        self.coder.allow_texts(4 * FEW)

    def _most_in_vain(self) -> int:
        """How many values there may be before it is asked which of them are needed."""
        if len(self.coder) <= FEW:
            return 0
        words, memory = self.state.words, self.source.memory
        rows = sum(int(words[table.at + 2]) for table in memory.tables if table.key)
        inputs = [memory.stores[part.map] for part in self.program.parts]
        slots = sum(
            len(store.key) * int(words[store.table.at + 2]) for store in inputs if store.key
        )
        most = 2 * self.coder.kept + rows
        return most if self.dropped else min(most, 2 * slots)

    def forget_unused(self) -> None:
        """Forget all values that are in no table."""
        coder = self.coder
        used = np.zeros(len(coder.values), np.bool_)
        texts = np.zeros(coder.texts.places if len(coder) > len(coder.codes) else 0, np.bool_)
        for table in self.source.memory.tables if len(used) or len(texts) else ():
            rows = self.state.rows(table) if table.key else np.zeros((0, 0), np.int64)
            for column, domain in enumerate(self.domains(table.key)):
                marks = texts if domain.format == TEXTS else used
                if domain.format in (TEXTS, *BY_DICTIONARY):
                    codes = rows[:, column]
                    marks[codes[(codes >= PLAIN) & (codes != NULL)] - PLAIN] = True
        coder.forget_all_but(used, texts)

    # --- loading ----------------------------------------------------------------------------------

    def load(self, contents: Iterable[Change], layout: Layout | None = None) -> None:
        """Fill the inputs, then every other map in one pass over what it is made from."""
        ordered = sorted(contents, key=itemgetter(0))
        is_zero = self.ring.is_zero
        self.load_columns(
            {
                atom: self.encode(atom, [(row, p) for _, row, p in group if not is_zero(p)])
                for atom, group in groupby(ordered, itemgetter(0))
            },
            layout,
        )

    def load_columns(self, contents: dict[int, Columns], layout: Layout | None = None) -> None:
        """Fill an empty engine with coded contents; rows of an atom are distinct."""
        self.state.words[LOADING] = 1
        if self.partitions is None:
            overflow = False
            for atom, columns in contents.items():
                overflow |= bool(columns and self.run(f"put_{atom}", columns))
        else:
            overflow = bool(self._fill_partitions({a: c for a, c in contents.items() if c}, layout))
        overflow |= bool(self.call("fill"))
        self.call("finish")
        self.state.words[LOADING] = 0
        if overflow:
            raise self._problem(int(self.state.words[0]), list(contents.items()))

    def _fill_partitions(self, contents: dict[int, Columns], layout: Layout | None) -> int:
        assert self.partitions is not None
        words, parts = self.state.words, [p for p in self.program.parts if p.levels]
        words[SIZE] = sum(len(columns[0]) for columns in contents.values())
        words[BASE] = 2 * int(words[SIZE]) + 1 if layout is None else layout.base
        self.call("set_base")
        split = {part.atom for part in parts}
        copies, row_copies = np.zeros(len(parts), np.int64), []
        for atom, columns in contents.items():
            if atom not in split:
                self.run(f"put_{atom}", columns)
                continue
            rows = np.column_stack([column.view(np.int64) for column in columns])
            copy = np.concatenate([[len(rows)], rows.ravel()]).astype(np.int64)
            row_copies.append(copy)
            copies[next(i for i, p in enumerate(parts) if p.atom == atom)] = copy.ctypes.data
        if layout is None:
            return self.call("distribute", copies.ctypes.data)
        self.partitions.set_levels(layout, self.call)
        return self.call("spread", copies.ctypes.data)

    def layout(self) -> Layout | None:
        """What is heavy now, if relations are split."""
        return None if self.partitions is None else self.partitions.layout()

    def inputs(self) -> Iterator[Change]:
        """The tuples of all atoms with their payloads."""
        if self.dropped:
            names = ", ".join(sorted(self.dropped))
            raise ViewkeepError(f"the rows of {names} were not kept (keep_inputs=False)")
        for part in self.program.parts:
            store, atoms = self.source.memory.stores[part.map], frozenset({part.atom})
            domains = self.domains(self._part_keys[part.atom])
            loose = self.sums is not None and any(domain.loose for domain in domains)
            for row, payload in self.items(store, atoms):
                if not loose and self.extremes is None:
                    yield part.atom, row, payload
                    continue
                given = tuple([whole_again(v) if d.loose else v for v, d in zip(row, domains)])  # noqa: B905
                yield part.atom, given, self.payload.of(part.atom, given, payload[0])

    def input_payload(self, atom: int, row: Row) -> Any:
        """The payload of one tuple of an atom; None if it is absent."""
        domains = self.domains(self._part_keys[atom])
        codes = [self.coder.find(v, d) for v, d in zip(row, domains, strict=True)]
        if None in codes:
            return None
        for part in self.program.parts:
            store = self.source.memory.stores[part.map]
            element = self._find_payload(store, codes, atom) if part.atom == atom else None
            if element is not None:
                return element if self.extremes is None else self.payload.of(atom, row, element[0])
        return None

    def _find_payload(self, store: Store, codes: list[Any], atom: int) -> Any:
        table = store.table
        address = self.state.address + 8 * table.at
        if table.key:
            seek = self.code.function(f"seek_{table.shape}", 1 + len(codes))
            address = seek(address, *codes)
        if not address:
            return None
        rows = words_at(address, table.stride).reshape(1, -1)
        (element,) = self.elements(rows, store, frozenset({atom}))
        if self.extremes is not None:
            return element if element[0] else None
        return None if self.ring.is_zero(element) else element

    # --- reading ----------------------------------------------------------------------------------

    @property
    def maps(self) -> "_Maps":
        """The maps as relations of values, each as it is when it is asked for."""
        return _Maps(self)

    def relation(self, each: Map) -> Relation[Any]:
        """A copy of a map."""
        relation: Relation[Any] = Relation(each.key, INTEGERS if each.live else self.ring)
        entries = self.items(self.source.memory.stores[each.name], each.atoms)
        if self.extremes is not None and not each.live:
            entries = self._with_values(each, entries)
        for row, payload in entries:
            relation.add(row, payload)
        return relation

    def _with_values(
        self, each: Map, entries: Iterator[tuple[Row, Any]]
    ) -> Iterator[tuple[Row, Any]]:
        """The entries of a map with the ordered values of their payloads."""
        assert self.extremes is not None
        values = [self._values(each, extreme) for extreme in self.extremes.each]
        for row, payload in entries:
            whole = list(payload)
            for extreme, own in zip(self.extremes.each, values, strict=True):
                number = 0 if extreme.atom in each.atoms else payload[0]
                whole.insert(extreme.place, extreme.element_of(number, own.get(row, [])))
            yield row, tuple(whole)

    def _values(self, each: Map, extreme: Extreme) -> dict[Row, list[tuple[Any, int]]]:
        """By entry of a map, the values of an extreme's variable in order, with their counts."""
        assert self.extremes is not None
        if extreme.atom not in each.atoms:
            return {}
        values: dict[Row, Counter[Any]] = {}
        source = self.extremes.values_of(each, extreme)
        places = [source.key.index(v) for v in each.key]
        value_place = source.key.index(extreme.variable)
        store = self.source.memory.stores[source.name]
        for row, payload in self.items(store, source.atoms):
            count = payload if source.live else payload[0]
            if row[value_place] is not None and count:
                key = tuple([row[place] for place in places])
                values.setdefault(key, Counter())[row[value_place]] += count
        pairs = {row: sorted((v, n) for v, n in own.items() if n) for row, own in values.items()}
        return {row: own for row, own in pairs.items() if own}

    def sizes(self) -> dict[str, int]:
        """How many entries each map has."""
        stores = self.source.memory.stores
        return {each.name: self.state.count(stores[each.name]) for each in self.program.maps}

    def memory(self) -> dict[str, int]:
        """Bytes of each map's table and indexes; fused maps share a table."""
        stores, words = self.source.memory.stores, self.state.words
        sizes = {at: 8 * count for at, _, count in blocks(self.state.memory, words)}
        return {
            each.name: sizes.get(stores[each.name].table.at, 0)
            + sum(
                sizes[index.pool] + sizes.get(index.groups.at, 0)
                for index in stores[each.name].indexes
            )
            for each in self.program.maps
        }

    def enumerate(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; the inputs are given."""
        return self._output.enumerate(inputs)

    def portions(
        self, inputs: dict[str, Any], rows: int = PORTION
    ) -> Iterator[tuple[int, Columns]]:
        """Output tuples as columns, so many rows at a time; the columns are used again."""
        return self._output.portions(inputs, rows)

    def lookup(self, row: Row, inputs: dict[str, Any]) -> Any:
        """The payload of one output tuple."""
        return self._output.lookup(row, inputs)

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that this tuple of an atom makes."""
        return self._output.output_change(atom, row, payload)


class _Maps(Mapping[str, Relation[Any]]):
    """Copies of an engine's maps, made one by one: to read them all takes long."""

    def __init__(self, engine: CompiledEngine) -> None:
        self._engine = engine
        self._maps = {each.name: each for each in engine.program.maps}

    def __getitem__(self, name: str) -> Relation[Any]:
        return self._engine.relation(self._maps[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)
