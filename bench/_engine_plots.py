"""Plots of the engine benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(folder: Path, figures: Sequence[Any], sizes: Sequence[tuple[int, float, float]]) -> None:
    """Updates per second by contender; cost and memory against the number of tuples."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "viewkeep", "svg.fonttype": "none"})
    _rates(folder / "engine_rates.svg", figures)
    counts = [size for size, _, _ in sizes]
    _line(folder / "engine_sizes.svg", counts, [cost for _, cost, _ in sizes], "ns per update")
    _line(folder / "engine_memory.svg", counts, [m for _, _, m in sizes], "bytes per entry of R")


def _rates(path: Path, figures: Sequence[Any]) -> None:
    from matplotlib import pyplot

    rates = [each for each in figures if each.unit == "updates/s"][::-1]
    titles = [f"{each.workload}: {each.contender}, {each.measure}" for each in rates]
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(rates) + 1))
    colours = ["#2a6f97" if "compiled" in each.contender else "#a9b4bd" for each in rates]
    axes.barh(titles, [each.value for each in rates], color=colours)
    axes.set_xscale("log")
    axes.set_xlabel("updates per second")
    _save(figure, path)


def _line(path: Path, sizes: list[int], values: list[float], label: str) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    axes.plot(sizes, values, marker="o", color="#2a6f97")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tuples loaded (workload A)")
    axes.set_ylabel(label)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
