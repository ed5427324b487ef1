"""What a lake remembers: what a view reflects, what its refreshes did, and how a round goes on.

Nothing here knows how tables are stored. A view's own commit is the only place where its state
stands, so that the rows of a version and what they reflect can never differ:

    1. write files of caches, and commit the caches   (a cache is read only at the version that
    2. write files of the view                         the view's state names)
    3. commit the view with its `ViewState`           (the refresh has happened)

A process that dies before 3 has changed nothing that anyone reads. Two processes at the same time
both try 3 from the same version, and one of them loses.
"""

from viewkeep.lake.views.experience import Costs, Experience
from viewkeep.lake.views.reports import RefreshReport, Timer
from viewkeep.lake.views.state import Pins, ViewState
from viewkeep.lake.views.verification import Verification

__all__ = [
    "Costs",
    "Experience",
    "Pins",
    "RefreshReport",
    "Timer",
    "Verification",
    "ViewState",
]
