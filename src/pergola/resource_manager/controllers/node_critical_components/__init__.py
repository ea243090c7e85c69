"""Takes the taint off Nodes on which everything critical runs (spec 11 §5).

`seen` is what is kept of Nodes, Pods, DaemonSets and CSINodes, `watches` what wakes whom;
`scheduling` and `checks` decide; `controller` tells and patches.
"""

from pergola.resource_manager.controllers.node_critical_components.controller import (
    Settings,
    node_critical_components,
)

__all__ = ["Settings", "node_critical_components"]
