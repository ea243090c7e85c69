"""NetworkPolicies for Services, whose callers only need a pod label (spec 11 §4).

`service` reads a Service (`annotations` its annotations), `intents` decides who may talk to it,
`desired` renders the policies (`names`, `descriptions`), and `kept` selects old ones that survive a
mistake. `watches` holds all caches (`seen` is their content; `peers`, `callers` and `istio` look
things up in them), `triggers` maps events to Services, `reconcile` follows the steps of §4.9, and
`apply` writes. `explanation` says, for commands, who may talk to a Service and why.
"""

from pergola.controllers.network_policy.unit import Settings, network_policy

__all__ = ["Settings", "network_policy"]
