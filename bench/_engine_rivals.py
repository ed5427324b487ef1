"""What the compiled engine is measured beside: plain dicts, DuckDB, a C++ twin, Pathway."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench._engine_data import Workload
from bench.skew import NEXT

HERE = Path(__file__).parent


def timed(work: Callable[[], object]) -> float:
    """Seconds of processor time of one run: what others do on the machine matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


class StarDicts:
    """Workload A in straight-line Python: rows, counts per key, and the result."""

    def __init__(self, load: Workload) -> None:
        self.rows = {name: defaultdict(int) for name in load.relations}
        self.counts = {name: defaultdict(int) for name in load.relations}
        self.result: dict[int, int] = {}
        for name, rows in load.data.items():
            for row in map(tuple, rows.tolist()):
                self.update(name, row, 1)

    def update(self, relation: str, row: tuple[int, ...], count: int) -> None:
        """One update."""
        own, counts, y = self.rows[relation], self.counts[relation], row[0]
        own[row] += count
        if not own[row]:
            del own[row]
        counts[y] += count
        if not counts[y]:
            del counts[y]
        product = 1
        for each in self.counts.values():
            product *= each.get(y, 0)
        if product:
            self.result[y] = product
        else:
            self.result.pop(y, None)


class TriangleDicts:
    """Workload B in straight-line Python: the smaller of two neighbourhoods is iterated."""

    def __init__(self, load: Workload) -> None:
        self.out = {name: defaultdict(dict) for name in "RST"}
        self.into = {name: defaultdict(dict) for name in "RST"}
        self.count = 0
        for name, rows in load.data.items():
            for first, second in rows.tolist():
                self.out[name][first][second] = 1
                self.into[name][second][first] = 1

    def update(self, relation: str, row: tuple[int, ...], count: int) -> None:
        """One update of R(a, b): the c with S(b, c) and T(c, a)."""
        first, second = row
        following = self.out[NEXT[relation]][second]
        before = self.into[NEXT[NEXT[relation]]][first]
        small, large = (following, before) if len(following) < len(before) else (before, following)
        self.count += count * sum(m * large[c] for c, m in small.items() if c in large)
        for side, key, other in ((self.out, first, second), (self.into, second, first)):
            group = side[relation][key]
            group[other] = group.get(other, 0) + count
            if not group[other]:
                del group[other]


def dicts_rate(load: Workload, most: int) -> float | None:
    """Updates per second of plain Python."""
    kind = {"A": StarDicts, "B": TriangleDicts}.get(load.name[0])
    if kind is None:
        return None
    live, stream = kind(load), load.singles(most)

    def work() -> None:
        for relation, row, count in stream:
            live.update(relation, row, count)

    return len(stream) / timed(work)


def duckdb_seconds(load: Workload) -> float:
    """One recomputation from scratch: what a single fresh answer costs without maintenance."""
    import duckdb
    import pyarrow

    connection = duckdb.connect()
    for name, rows in load.data.items():
        connection.register("rows", pyarrow.table({"k": rows[:, 0], "v": rows[:, 1]}))
        connection.execute(f"create table {name} as select * from rows")
        connection.unregister("rows")
    query = "select count(*) from R join S on R.v = S.k join T on S.v = T.k and T.v = R.k"
    if load.name[0] != "B":
        query = _aggregated_first(load)
    start = time.perf_counter()  # it runs on all processors
    connection.execute(query).fetchall()
    return time.perf_counter() - start


def _aggregated_first(load: Workload) -> str:
    """Counts per key before the join, as one would write it by hand."""
    first, *rest = load.relations
    measure = "count(*)" if load.name[0] == "A" else "sum(v)"
    text = f"(select k, {measure} as n0 from {first} group by k)"
    for i, name in enumerate(rest, start=1):
        text += f" join (select k, count(*) as n{i} from {name} group by k) using (k)"
    product = " * ".join(f"n{i}" for i in range(len(load.relations)))
    return f"select sum({product}) from {text}"


# --- the C++ twin ---------------------------------------------------------------------------------


def twin_rate(load: Workload) -> float | None:
    """Updates per second of plain C++, None without a compiler; the result goes to `checks`."""
    compiler = shutil.which("g++")
    if compiler is None or load.name[0] not in "AB":
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "twin"
        source = HERE / "engine_twin.cpp"
        flags = ["-O3", "-march=native", "-std=c++17"]
        subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
        _write(load, Path(folder))
        kind = "star" if load.name[0] == "A" else "triangle"
        run = subprocess.run(
            [str(program), kind, folder], check=True, capture_output=True, text=True
        )
    found = json.loads(run.stdout)
    checks[load.name] = found["result"]
    return float(found["updates"]) / float(found["seconds"])


checks: dict[str, int] = {}
"""The results of the twin by workload, to be compared."""


def _write(load: Workload, folder: Path) -> None:
    numbers = {name: i for i, name in enumerate(load.relations)}
    loaded = [
        _numbered(numbers[name], rows, np.ones(len(rows), np.int64))
        for name, rows in load.data.items()
    ]
    stream = [_numbered(numbers[name], rows, counts) for name, rows, counts in load.batches]
    np.concatenate(loaded).tofile(folder / "load.bin")
    np.concatenate(stream).tofile(folder / "updates.bin")


def _numbered(relation: int, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.column_stack([np.full(len(rows), relation), rows, counts]).astype(np.int64)


# --- Pathway --------------------------------------------------------------------------------------


def pathway_rate(load: Workload, folder: Path) -> float | str:
    """Updates per second of Pathway in an environment of its own, or why there are none."""
    python = folder / "bin" / "python"
    if load.name[0] != "A":
        return "only workload A"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        if made.returncode:
            return "its environment cannot be made"
    install = [str(python), "-m", "pip", "install", "--quiet", "pathway"]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        return "it cannot be installed"
    with tempfile.TemporaryDirectory() as data:
        _write(load, Path(data))
        script = [str(python), str(HERE / "_engine_pathway.py"), data]
        found = []
        for command in (script, [*script, "--load-only"]):
            run = subprocess.run(command, check=False, capture_output=True, text=True)
            if run.returncode:
                return f"it failed: {run.stderr.strip().splitlines()[-1] if run.stderr else ''}"
            found.append(json.loads(run.stdout.strip().splitlines()[-1]))
    whole, loading = found
    return float(whole["updates"]) / max(1e-9, whole["seconds"] - loading["seconds"])
