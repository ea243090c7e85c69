"""Removal of the taint from Nodes once their critical components run (spec 11 §5).

`seen` has the facts about Nodes, Pods, DaemonSets and CSINodes, `watches` the caches and triggers;
`scheduling` and `checks` decide; `controller` reports and patches.
"""

from pergola.resource_manager.controllers.node_critical_components.controller import (
    Settings,
    node_critical_components,
)

__all__ = ["Settings", "node_critical_components"]
