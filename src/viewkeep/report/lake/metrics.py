"""What a watcher has done, in the text format of Prometheus."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it loads what reads a lake
    from viewkeep.refresh.watch import ViewFigures


def metrics_text(figures: Mapping[str, "ViewFigures"]) -> str:
    """The figures in the text format of Prometheus."""
    return "".join(_metric_lines(figures))


_METRICS = {
    "lag_seconds": ("gauge", "Age of the oldest change that the view has not seen.", "lag"),
    "refreshes_total": ("counter", "Refreshes that made a version.", "refreshes"),
    "errors_total": ("counter", "Refreshes that failed.", "errors"),
    "changed_rows_total": ("counter", "Rows of the view that refreshes changed.", "rows"),
    "refresh_seconds_total": ("counter", "Seconds that refreshes took.", "seconds"),
}


def _metric_lines(figures: Mapping[str, "ViewFigures"]) -> Iterable[str]:
    for name, (kind, meaning, attribute) in _METRICS.items():
        yield f"# HELP viewkeep_view_{name} {meaning}\n# TYPE viewkeep_view_{name} {kind}\n"
        for view, each in sorted(figures.items()):
            if view:
                yield f'viewkeep_view_{name}{{view="{view}"}} {getattr(each, attribute):g}\n'
