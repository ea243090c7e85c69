"""The dashboard: a live page over a cluster managed by Pergola.

`state` watches and judges, `access` controls who may see what, `server` answers requests, and
`page` is the page itself: static files without a build step. The caller provides the
product-specific answers: why an object is as it is, flows, and pictures (`Answers`).

Nothing here writes to the cluster, except reviews of tokens and permissions.
"""

from pergola.dashboard.access.cluster import ClusterDoor
from pergola.dashboard.access.lifetimes import Lifetimes
from pergola.dashboard.access.local import LocalDoor
from pergola.dashboard.access.viewer import Door, Viewer
from pergola.dashboard.access.visitors import Visitors
from pergola.dashboard.server.answers import Answers
from pergola.dashboard.server.app import Server, serve_dashboard
from pergola.dashboard.state.board import Board

__all__ = [
    "Answers",
    "Board",
    "ClusterDoor",
    "Door",
    "Lifetimes",
    "LocalDoor",
    "Server",
    "Viewer",
    "Visitors",
    "serve_dashboard",
]
