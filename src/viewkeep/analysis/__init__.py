"""What is possible for a query, before anything runs: classes, bounds and the reasons.

One file per property; `PROPERTIES` lists them in order, `analyze` is the flow.
"""

from viewkeep.analysis.analyze import (
    PROPERTIES,
    Analysis,
    WorkloadAnalysis,
    analyze,
    analyze_query,
    analyze_workload,
)
from viewkeep.analysis.exponents import Bounds
from viewkeep.analysis.lower_bound import LowerBound
from viewkeep.analysis.variable_order import VariableOrder
from viewkeep.analysis.verdict import Verdict

__all__ = [
    "PROPERTIES",
    "Analysis",
    "Bounds",
    "LowerBound",
    "VariableOrder",
    "Verdict",
    "WorkloadAnalysis",
    "analyze",
    "analyze_query",
    "analyze_workload",
]
