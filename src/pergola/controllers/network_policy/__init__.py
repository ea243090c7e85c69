"""NetworkPolicies by which callers of a Service need nothing but a pod label (spec 11 §4).

`service` reads what a Service asks for (its annotations in `annotations`), `intents` says who may
talk to it, `desired` renders the policies (`names`, `descriptions`), and `kept` says which old ones
outlive a mistake. `watches` has all caches (`seen` what they keep, `peers`, `callers` and `istio`
what is looked up in them), `wakes` says whom an event is about, `reconcile` follows the steps of
§4.9, and `apply` writes.
"""

from pergola.controllers.network_policy.unit import Settings, network_policy

__all__ = ["Settings", "network_policy"]
