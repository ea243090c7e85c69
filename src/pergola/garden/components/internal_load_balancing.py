"""Access of the garden's pods to the API server inside the cluster (spec 20 §12.1).

A webhook of the resource manager reads this ConfigMap and maps the API server's names to the
address of the gateway's internal Service in the pods' host aliases.
"""

from typing import Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Identity, Key
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Removable, Rendered
from pergola.garden.components.conventions import TLS_TERMINATION, terminates_tls
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest

NAME: Final = "istio-internal-load-balancing"


def absent(landscape: Landscape) -> str | None:
    """Return why pods connect to the API server directly, or None if they use the gateway."""
    return None if terminates_tls(landscape) else f"feature gate {TLS_TERMINATION} is off"


def render(landscape: Landscape) -> Rendered:
    """Return the ConfigMap with the API server's first name and the gateway's namespace."""
    data = {"hosts": landscape.api_hosts[0], "istio-namespace": INGRESS_NAMESPACE}
    return Rendered(direct=(manifest("v1", "ConfigMap", NAME, namespace=NAMESPACE, data=data),))


INTERNAL_LOAD_BALANCING: Final = Component(
    name=NAME,
    deploy=task_names.INTERNAL_LOAD_BALANCING,
    absent=absent,
    render=render,
    removable=Removable(direct=(Identity(CONFIG_MAP, Key(NAMESPACE, NAME)),)),
    waits=False,
)
