"""The resource manager of the runtime cluster (spec 20 §13).

It maintains the objects of all other components, so the operator applies its objects directly.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.api.resources_v1alpha1 import managed_resource_crd
from pergola.garden.components import authorities, monitoring, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import FROM_WORLD, SEED_SCRAPES, open_ports
from pergola.garden.components.crds import CRDS
from pergola.garden.components.priority_classes import CRITICAL
from pergola.garden.components.removal import removable
from pergola.garden.components.resource_manager import workload
from pergola.garden.components.resource_manager.configuration import (
    METRICS_PORT,
    WEBHOOK_PORT,
    for_runtime,
)
from pergola.garden.landscape import NAMESPACE, SEVERAL, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import account, cluster_role, rule, selector

NAME: Final = "gardener-resource-manager"

_LABELS: Final = {"app": NAME}
_INSTANCE: Final = workload.Instance(
    name=NAME,
    role="seed",
    labels=_LABELS,
    prometheus=monitoring.SEED,
    priority=CRITICAL,
    high_availability={"high-availability-config.resources.gardener.cloud/skip": "true"},
    opened={
        **open_ports(SEED_SCRAPES, METRICS_PORT),
        **open_ports(FROM_WORLD, WEBHOOK_PORT),
    },
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the webhooks."""
    del landscape
    yield workload.certificate(_INSTANCE)


def render(landscape: Landscape) -> Rendered:
    """Return the resource manager, the CRD that it serves, and its permissions and webhooks.

    The webhook configurations come last: the pods must start without them, and API servers must
    trust a new authority as soon as its certificate is served.
    """
    config = for_runtime(landscape, NAME)
    bundle = landscape.credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    objects = (
        managed_resource_crd(),
        *cluster_role(
            f"{NAME}-seed", [rule("*", ["*"], ["*"])], account(NAME, NAMESPACE), labels=_LABELS
        ),
        *workload.objects(_INSTANCE, landscape, config, spread=_spread(landscape)),
        *landscape.webhook_configurations(config, bundle),
    )
    return Rendered(direct=objects)


def _spread(landscape: Landscape) -> list[JsonObject]:
    """Return the constraints that its own webhook would set if it ran already."""
    common: JsonObject = {
        "labelSelector": selector(_INSTANCE.pods),
        "matchLabelKeys": ["pod-template-hash"],
        "maxSkew": 1,
    }
    nodes = {
        **common,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    if not landscape.has_several_zones:
        return [nodes]
    zones = {
        **common,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "minDomains": SEVERAL,
    }
    return [nodes, zones]


RESOURCE_MANAGER: Final = Component(
    name=NAME,
    deploy=task_names.RESOURCE_MANAGER,
    after=tuple(CRDS[key].ready for key in ("etcd", "vpa", "istio", "opentelemetry")),
    is_setup=True,
    wait="Waiting for gardener-resource-manager to be healthy",
    credentials=credentials,
    render=render,
    removable=removable(
        "MutatingWebhookConfiguration gardener-resource-manager",
        "ValidatingWebhookConfiguration gardener-resource-manager",
        "Deployment gardener-resource-manager",
        "PodDisruptionBudget gardener-resource-manager",
        "VerticalPodAutoscaler gardener-resource-manager-vpa",
        "ServiceMonitor seed-gardener-resource-manager",
        "Service gardener-resource-manager",
        "ServiceAccount gardener-resource-manager",
        "ClusterRoleBinding gardener-resource-manager-seed",
        "ClusterRole gardener-resource-manager-seed",
        "CustomResourceDefinition managedresources.resources.gardener.cloud",
    ),
)
