"""The properties of a query with the witness of each "yes" and "no"."""

from rich.table import Table
from rich.text import Text

from viewkeep.analysis import Analysis
from viewkeep.report.style import BAD, GOOD

NAMES = {
    "alpha_acyclic": "alpha-acyclic",
    "free_connex": "free-connex",
    "hierarchical": "hierarchical",
    "q_hierarchical": "q-hierarchical",
    "delta_rank": "delta rank",
    "reduct_q_hierarchical": "q-hierarchical reduct",
    "bounded_degree": "bounded degree",
    "foreign_key_join": "foreign-key join",
    "tractable_access_pattern": "tractable access pattern",
    "tractable_with_static": "tractable with static",
    "insert_only": "constant under inserts only",
    "adaptive": "known heavy/light shape",
}
"""The properties as people call them."""


def verdict_table(analysis: Analysis) -> Table:
    """A line per property that matters for the query."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, because in reasons(analysis).items():
        verdict = analysis.verdicts[name]
        answer = Text("yes", GOOD) if verdict else Text("no", BAD)
        table.add_row(answer, NAMES.get(name, name), because)
    return table


def reasons(analysis: Analysis) -> dict[str, str]:
    """The witnesses, without repeating one that stands above or a query shown elsewhere."""
    witnesses: dict[str, str] = {}
    for name, verdict in analysis.relevant.items():
        if name == "adaptive" and not verdict and analysis.strategy == "epsilon":
            continue  # another reason for splitting applies, and delta rank tells it
        because = verdict.because
        for query in (analysis.reduct, analysis.fracture):
            because = because.removeprefix("fracture ").removeprefix(f"{query}: ")
        for earlier, text in analysis.why.items():
            if earlier in witnesses and because.endswith(f": {text}"):
                because = f"{because.removesuffix(f': {text}')}, see {NAMES[earlier]}"
        witnesses[name] = because
    return witnesses
