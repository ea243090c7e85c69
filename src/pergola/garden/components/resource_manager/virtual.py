"""The resource manager of the virtual cluster, and its bootstrap (spec 20 §14).

It requests the tokens of all components, including its own. The first time, and whenever its token
has expired, it therefore starts with a client certificate that is valid for ten minutes.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import (
    Clusters,
    Component,
    Managed,
    Rendered,
    Stage,
    Target,
)
from pergola.garden.components.conventions import WEBHOOK_TARGETS, open_ports
from pergola.garden.components.priority_classes import P400
from pergola.garden.components.removal import removable
from pergola.garden.components.resource_manager import workload
from pergola.garden.components.resource_manager.bootstrap import (
    ACCOUNT,
    LIMIT,
    PERMISSIONS,
    learn_whether_needed,
    wait_for_token,
)
from pergola.garden.components.resource_manager.configuration import (
    METRICS_PORT,
    WEBHOOK_PORT,
    for_virtual,
)
from pergola.garden.components.virtual_access import (
    API_SERVER,
    TO_VIRTUAL_API_SERVER,
    access_secret,
    generic_kubeconfig,
    kubeconfig_volume,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import KUBE_SYSTEM, READ, account, manifest, role, rule
from pergola.manifests.labels import HIGH_AVAILABILITY
from pergola.manifests.shoot_access import access_secret_name, kubeconfig_mount
from pergola.secrets_manager import ClientKubeconfig, Options, SigningCA

NAME: Final = "virtual-garden-gardener-resource-manager"
BOOTSTRAP: Final = "shoot-access-gardener-resource-manager-bootstrap"
"""The credential with its client certificate."""

_TARGET_ROLE: Final = "gardener.cloud:target:resource-manager"
_RBAC: Final = "rbac.authorization.k8s.io"
_VALID: Final = timedelta(minutes=10)
_SCRAPES: Final = "networking.resources.gardener.cloud/from-all-scrape-targets-allowed-ports"
_LABELS: Final = {"app": NAME, "gardener.cloud/role": "controlplane"}
_WRITE: Final = ("get", "list", "watch", "update", "patch")
_INSTANCE: Final = workload.Instance(
    name=NAME,
    role="controlplane",
    labels=_LABELS,
    prometheus="shoot",
    priority=P400,
    high_availability={HIGH_AVAILABILITY: "server"},
    opened={
        **open_ports(_SCRAPES, METRICS_PORT),
        **open_ports(WEBHOOK_TARGETS, WEBHOOK_PORT),
    },
    destinations=TO_VIRTUAL_API_SERVER,
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the server, and the kubeconfig."""
    yield workload.certificate(_INSTANCE)
    yield generic_kubeconfig(landscape)


def bootstrap_credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the server, and the client's, valid until it has a token."""
    yield workload.certificate(_INSTANCE)
    config = ClientKubeconfig(
        name=BOOTSTRAP,
        user="gardener.cloud:system:gardener-resource-manager",
        groups=("system:masters",),
        server=f"https://{API_SERVER}",
        server_ca=landscape.credentials.bundle(authorities.CLUSTER).data["bundle.crt"],
        context=NAMESPACE,
    )
    options = Options(
        signed_by=SigningCA(authorities.CLIENT),
        validity=_VALID,
        labels={"resources.gardener.cloud/garbage-collectable-reference": "true"},
    )
    yield Credential(config, options)


def render(landscape: Landscape) -> Rendered:
    """Return the resource manager with its token."""
    return _rendered(landscape, kubeconfig_volume(landscape, ACCOUNT))


def render_bootstrap(landscape: Landscape) -> Rendered:
    """Return the resource manager with its client certificate."""
    volume = {
        "name": kubeconfig_mount()["name"],
        "secret": {
            "secretName": landscape.credentials.name(BOOTSTRAP),
            "items": [{"key": "kubeconfig", "path": "kubeconfig"}],
            "defaultMode": 0o640,
        },
    }
    return _rendered(landscape, volume)


async def wait_for_permissions(landscape: Landscape, clusters: Clusters) -> None:
    """Wait until it has renewed its token, and has its permissions.

    Raises:
        NotReady: It has not in time; it keeps running with its certificate.
    """
    await wait_for_token(clusters)
    managed = render_bootstrap(landscape).managed
    await clusters.wait_ready(Rendered(managed=managed), LIMIT)


def _rendered(landscape: Landscape, kubeconfig: JsonObject) -> Rendered:
    config = for_virtual(landscape, NAME)
    access = (kubeconfig, kubeconfig_mount())
    direct = (
        access_secret(ACCOUNT, expiration="24h"),
        *role(NAME, NAMESPACE, _rules(), account(NAME, NAMESPACE), labels=_LABELS),
        *workload.objects(_INSTANCE, landscape, config, kubeconfig=access),
    )
    managed = Managed(name=PERMISSIONS, objects=(_binding(),), target=Target.VIRTUAL)
    return Rendered(managed=(managed,), direct=direct)


def _rules() -> list[JsonObject]:
    return [
        rule("resources.gardener.cloud", ["managedresources", "managedresources/status"], _WRITE),
        rule("", ["secrets"], _WRITE),
        rule("", ["configmaps", "events"], ["create"]),
        rule("", ["configmaps"], ["get", "watch", "update", "patch"], [NAME]),
        rule("coordination.k8s.io", ["leases"], ["create"]),
        rule("coordination.k8s.io", ["leases"], ["get", "watch", "update"], [NAME]),
        rule("machine.sapcloud.io", ["machines"], READ),
    ]


def _binding() -> JsonObject:
    """Return its binding to `cluster-admin`, which it could not restore once deleted."""
    return manifest(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        _TARGET_ROLE,
        annotations={"resources.gardener.cloud/keep-object": "true"},
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[account(ACCOUNT, KUBE_SYSTEM)],
    )


VIRTUAL_RESOURCE_MANAGER: Final = Component(
    name=NAME,
    deploy=task_names.VIRTUAL_RESOURCE_MANAGER,
    wait=task_names.VIRTUAL_RESOURCE_MANAGER_READY,
    after=(task_names.API_SERVER_READY,),
    before=(
        Stage(
            learn=learn_whether_needed,
            credentials=bootstrap_credentials,
            render=render_bootstrap,
            finish=wait_for_permissions,
        ),
    ),
    credentials=credentials,
    render=render,
    removable=removable(
        f"Deployment {NAME}",
        f"PodDisruptionBudget {NAME}",
        f"VerticalPodAutoscaler {NAME}-vpa",
        f"ServiceMonitor shoot-{NAME}",
        f"Service {NAME}",
        f"RoleBinding {NAME}",
        f"Role {NAME}",
        f"ServiceAccount {NAME}",
        f"Secret {access_secret_name(ACCOUNT)}",
        managed=(PERMISSIONS,),
    ),
)
