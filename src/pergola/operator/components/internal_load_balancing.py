"""How pods of the garden reach the API server without leaving the cluster (spec 20 §12.1).

A webhook of the resource manager reads this ConfigMap, and makes the names of the API server known
to pods with the address of the gateway's internal Service.
"""

from typing import Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.manifests import manifest
from pergola.operator.components.component import Component, Identity, Removable, Rendered
from pergola.operator.components.istio import INGRESS_NAMESPACE
from pergola.operator.components.kube_apiserver_exposure.services import GATE, terminates_tls
from pergola.operator.garden.landscape import NAMESPACE, Landscape

NAME: Final = "istio-internal-load-balancing"


def absent(landscape: Landscape) -> str | None:
    """Return that pods talk to the API server itself, or None."""
    return None if terminates_tls(landscape) else f"feature gate {GATE} is off"


def render(landscape: Landscape) -> Rendered:
    """Return the names, and the namespace of the gateway."""
    data = {"hosts": ",".join(landscape.api_hosts), "istio-namespace": INGRESS_NAMESPACE}
    return Rendered(direct=(manifest("v1", "ConfigMap", NAME, namespace=NAMESPACE, data=data),))


INTERNAL_LOAD_BALANCING: Final = Component(
    name=NAME,
    deploy="Reconcile Istio internal load balancing ConfigMap",
    absent=absent,
    render=render,
    removable=Removable(direct=(Identity(CONFIG_MAP, Key(NAMESPACE, NAME)),)),
    waits=False,
)
