"""Random queries, types, engines and histories in one process, against an oracle in plain Python.

    python -m bench.fuzz [--seconds 600] [--seed 0] [--cases 0] [--steps 40]

Case after case, each from a seed of its own that reproduces it (`--seed S --cases 1`): a query over
columns of some types, a strategy, an engine, an output form, and a history of single rows, batches
as tuples and as Arrow, loads, threads, saving and restoring, copies, and texts that turn over.
After each step the output equals nested loops over the rows, and so does what a subscriber was
told. Counts of what was done are printed at the end; a difference ends the run with its seed.
"""

import argparse
import copy
import os
import pickle
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

import viewkeep as vk

Row = tuple[Any, ...]
DAY = date(2024, 2, 27)
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 999999)

TYPES: dict[str, tuple[Callable[[Random], Any], Any]] = {
    "int": (lambda choose: choose.randrange(-3, 4), pa.int64()),
    "wide": (lambda choose: choose.choice([0, 1, -(2**31), 2**40, 7]), pa.int64()),
    "decimal": (lambda choose: Decimal(choose.randrange(-9, 9)).scaleb(-2), pa.decimal128(9, 2)),
    "float": (lambda choose: choose.choice([0.1, -0.0, 0.0, 1.5, -2.25, 1e9, 3.0]), pa.float64()),
    "text": (lambda choose: choose.choice(["", "a", "ab", "b", "\u00e9", "z" * 30]), pa.string()),
    "day": (lambda choose: DAY + timedelta(days=choose.randrange(4)), pa.date32()),
    "moment": (lambda choose: MOMENT + timedelta(seconds=choose.randrange(3)), pa.timestamp("us")),
}
SUMMABLE = ("int", "wide", "decimal", "float")
STRATEGIES = ("auto", "auto", "viewtree", "delta", "recursive", "recompute", "epsilon")


@dataclass(frozen=True)
class Case:
    """A query with the types of its variables, and how it is kept."""

    outputs: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    atoms: tuple[tuple[str, tuple[str, ...]], ...]
    types: dict[str, str]
    options: dict[str, Any]

    @property
    def text(self) -> str:
        """The query in the notation."""
        aggregates = ", ".join(f"{function}({argument})" for function, argument in self.aggregates)
        head = ", ".join(self.outputs) + (f"; {aggregates}" if aggregates else "")
        return f"Q({head}) = " + " * ".join(f"{r}({', '.join(v)})" for r, v in self.atoms)


def random_case(choose: Random) -> Case:
    """Any query of one to three relations, and any way to keep it."""
    names = "abcd"[: choose.randrange(1, 5)]
    types = {name: choose.choice(list(TYPES)) for name in names}
    atoms = []
    for relation in "RST"[: choose.choice([1, 2, 2, 3])]:
        arity = min(len(names), choose.choice([1, 2, 2, 3]))
        atoms.append((relation, tuple(choose.sample(names, arity))))
    used = [v for v in names if any(v in own for _, own in atoms)]
    outputs = tuple(choose.sample(used, choose.randrange(len(used) + 1)))
    aggregates = []
    for _ in range(choose.choice([0, 0, 1, 2, 3])):
        variable = choose.choice(used)
        functions = ["count", "min", "max", "count_distinct"]
        functions += ["sum", "avg"] if types[variable] in SUMMABLE else []
        function = choose.choice(functions)
        bare = function == "count" and choose.random() < 0.5
        aggregates.append((function, "" if bare else variable))
    options = {
        "strategy": choose.choice(STRATEGIES),
        "engine": choose.choice(["compiled", "compiled", "reference", "auto"]),
        "output": choose.choice(["factorized", "factorized", "list"]),
        "mode": choose.choice(["eager", "eager", "lazy"]),
    }
    return Case(outputs, tuple(dict.fromkeys(aggregates)), tuple(atoms), types, options)


# --- the oracle -----------------------------------------------------------------------------------


def answer(case: Case, rows: dict[str, Counter[Row]]) -> dict[Row, Any]:
    """Output tuples with their payloads, by nested loops."""
    groups: dict[Row, list[tuple[dict[str, Any], int]]] = {}
    for binding, count in _bindings(case.atoms, rows, {}, 1):
        head = tuple(binding[v] for v in case.outputs)
        groups.setdefault(head, []).append((binding, count))
    return {head: _payload(case, members) for head, members in groups.items()}


def _bindings(
    atoms: tuple[tuple[str, tuple[str, ...]], ...],
    rows: dict[str, Counter[Row]],
    binding: dict[str, Any],
    count: int,
) -> Iterator[tuple[dict[str, Any], int]]:
    if not atoms:
        yield binding, count
        return
    (relation, variables), *rest = atoms
    for row, copies in rows[relation].items():
        if all(v not in binding or binding[v] == x for v, x in zip(variables, row, strict=True)):
            extended = {**dict(zip(variables, row, strict=True)), **binding}
            yield from _bindings(tuple(rest), rows, extended, count * copies)


def _payload(case: Case, members: list[tuple[dict[str, Any], int]]) -> Any:
    if not case.aggregates:
        return sum(count for _, count in members)
    return tuple(_aggregate(case, *each, members) for each in case.aggregates)


def _aggregate(
    case: Case, function: str, argument: str, members: list[tuple[dict[str, Any], int]]
) -> Any:
    if not argument:
        return sum(count for _, count in members)
    values = [(m[argument], n) for m, n in members if m[argument] is not None]
    count = sum(n for _, n in values)
    if function == "count":
        return count
    if function == "count_distinct":
        return len({value for value, _ in values})
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(value for value, _ in values)
    total = sum((Fraction(value) * n for value, n in values), Fraction(0))
    return _number(case.types[argument], total if function == "sum" else total / count, function)


def _number(type_: str, exact: Fraction, function: str) -> Any:
    """A sum or an average as the type has it; averages that are rounded are compared loosely."""
    if function == "avg" or type_ == "float":
        return float(exact)
    return int(exact) if type_ in ("int", "wide") else Decimal(int(exact * 100)).scaleb(-2)


def same(case: Case, found: dict[Row, Any], expected: dict[Row, Any]) -> bool:
    """Whether two outputs are equal, averages of them up to their last digits."""
    if found.keys() != expected.keys():
        return False
    if not case.aggregates:
        return bool(found == expected)
    return all(
        _alike(function, *pair)
        for head in found
        for (function, _), *pair in zip(case.aggregates, found[head], expected[head], strict=True)
    )


def _alike(function: str, found: Any, expected: Any) -> bool:
    if function != "avg" or found is None or expected is None:
        return bool(found == expected)
    return bool(abs(float(found) - expected) <= 1e-12 * max(1.0, abs(expected)))


# --- a history ------------------------------------------------------------------------------------


class History:
    """A maintainer, the rows that it should have, and what a subscriber knows."""

    def __init__(self, case: Case, choose: Random, done: Counter[str]) -> None:
        self.case, self.choose, self.done = case, choose, done
        self.live = vk.maintain(case.text, **case.options)
        self.rows = {relation: Counter[Row]() for relation, _ in case.atoms}
        self.told: dict[Row, Any] | None = None
        self._fresh = 0
        if choose.random() < 0.4:
            self._listen()

    def step(self) -> None:
        """Some change, and the comparison."""
        actions = (self._single, self._single, self._batch, self._batch, self._load)
        rare = (self._threads, self._restore, self._copy, self._turn_over)
        action = self.choose.choice(actions if self.choose.random() < 0.8 else rare)
        self.done[action.__name__.strip("_")] += 1
        action()
        self.compare()

    def compare(self) -> None:
        """Raise an error where the output is not that of the oracle."""
        expected = answer(self.case, self.rows)
        found = self._output(expected)
        assert same(self.case, found, expected), f"found {found}, expected {expected}"
        if self.told is not None:
            assert same(self.case, self.told, expected), f"told {self.told}, expected {expected}"
        if self.case.outputs and self.choose.random() < 0.2:
            assert self.live.to_arrow().num_rows == len(expected)

    def _output(self, expected: dict[Row, Any]) -> dict[Row, Any]:
        """What the maintainer tells; a query without outputs has a value even where it is not."""
        if self.case.outputs:
            return dict(self.live.enumerate())
        value = self.live.value()  # also where it is of nothing: it applies what was put off
        return {(): value} if expected else {}

    def _listen(self) -> None:
        told: dict[Row, Any] = {}

        def hear(changes: list[vk.OutputChange]) -> None:
            for change in changes:
                assert told.get(change.row) == change.before
                told[change.row] = change.after
                if change.after is None:
                    del told[change.row]

        told.update(self._output(answer(self.case, self.rows)))
        self.live.subscribe(hear)
        self.told = told

    def _row(self, variables: tuple[str, ...]) -> Row:
        return tuple(
            None if self.choose.random() < 0.1 else TYPES[self.case.types[v]][0](self.choose)
            for v in variables
        )

    def _changes(self, most: int) -> tuple[str, list[Row], list[int]]:
        """New rows of a relation and old ones that go, noted."""
        relation, variables = self.choose.choice(self.case.atoms)
        held, rows, counts = self.rows[relation], list[Row](), list[int]()
        for _ in range(self.choose.randrange(1, most)):
            if held and self.choose.random() < 0.5:
                row, count = self.choose.choice(list(held)), -1
            else:
                row, count = self._row(variables), 1
            held[row] += count
            if not held[row]:
                del held[row]
            rows.append(row)
            counts.append(count)
        return relation, rows, counts

    def _single(self) -> None:
        relation, rows, counts = self._changes(2)
        self.live.update(relation, rows[0], counts[0])

    def _batch(self) -> None:
        relation, rows, counts = self._changes(12)
        self.live.update_batch(relation, self._form(relation, rows), counts)

    def _load(self) -> None:
        relation, variables = self.choose.choice(self.case.atoms)
        rows = [self._row(variables) for _ in range(self.choose.randrange(8))]
        self.rows[relation].update(rows)
        self.live.load({relation: self._form(relation, rows)})

    def _form(self, relation: str, rows: list[Row]) -> Any:
        """Rows as tuples, or as Arrow."""
        if not rows or self.choose.random() < 0.5:
            return rows
        variables = dict(self.case.atoms)[relation]
        arrays = [
            pa.array(column, TYPES[self.case.types[v]][1])
            for v, column in zip(variables, zip(*rows, strict=True), strict=True)
        ]
        return pa.Table.from_arrays(arrays, list(variables))

    def _threads(self) -> None:
        """Batches from several threads at once."""
        batches = [self._changes(6) for _ in range(3)]
        errors: list[BaseException] = []

        def work(batch: tuple[str, list[Row], list[int]]) -> None:
            try:
                self.live.update_batch(*batch)
            except BaseException as error:
                errors.append(error)

        # Deletes of one batch may meet rows that another one inserts: sums do not mind the order,
        # and nobody reads meanwhile.
        threads = [Thread(target=work, args=(batch,)) for batch in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _restore(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            self.live.save(path)
            self.live = vk.Maintainer.restore(path)
            self.compare_once()
        self._again()

    def _copy(self) -> None:
        clones = (copy.deepcopy, lambda live: pickle.loads(pickle.dumps(live)))
        self.live = self.choose.choice(clones)(self.live)
        self._again()

    def compare_once(self) -> None:
        """Read while the file is still there."""
        if self.case.outputs:
            list(self.live.enumerate())

    def _again(self) -> None:
        """Copies have no subscribers."""
        if self.told is not None:
            self._listen()

    def _turn_over(self) -> None:
        """New texts in one batch, gone in the next."""
        texts = [v for v, type_ in self.case.types.items() if type_ == "text"]
        relations = [r for r, own in self.case.atoms if set(own) & set(texts)]
        if not relations:
            return
        relation = self.choose.choice(relations)
        variables = dict(self.case.atoms)[relation]
        rows = []
        for _ in range(200):
            self._fresh += 1
            row = dict(zip(variables, self._row(variables), strict=True))
            rows.append(tuple(f"t{self._fresh}" if v in texts else row[v] for v in variables))
        self.live.update_batch(relation, rows)
        self.live.update_batch(relation, self._form(relation, rows), [-1] * len(rows))


def run_case(seed: int, steps: int, done: Counter[str]) -> None:
    """One case; a query that a strategy does not take is counted, and kept by `auto`."""
    choose = Random(seed)
    case = random_case(choose)
    try:
        history = History(case, choose, done)
    except vk.QueryError:
        done["strategies refused"] += 1
        case.options.update(strategy="auto", output="factorized", engine="auto")
        history = History(case, choose, done)
    try:
        for _ in range(steps):
            history.step()
    except Exception:
        print(f"seed {seed}: {case.text}\n  {case.types} {case.options}", flush=True)
        raise
    done["cases"] += 1
    done[f"engine {type(history.live.engine).__name__}"] += 1
    done[f"strategy {history.live.program.strategy}"] += 1


def main() -> None:
    """Run for some time, and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=0, help="so many, whatever time they take")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    os.environ.setdefault("VIEWKEEP_OPTIMIZE", "0")
    done, failed, start = Counter[str](), list[int](), time.monotonic()
    seed = options.seed
    while seed < options.seed + options.cases or (
        not options.cases and time.monotonic() - start < options.seconds
    ):
        try:
            run_case(seed, options.steps, done)
        except Exception:
            failed.append(seed)
            traceback.print_exc(limit=-3)
        seed += 1
    print(f"{seed - options.seed} seeds from {options.seed} in {time.monotonic() - start:.0f} s")
    for name, count in sorted(done.items()):
        print(f"  {name:28} {count:,}")
    if failed:
        raise SystemExit(f"{len(failed)} failed: {failed}")


if __name__ == "__main__":
    main()
