"""The permissions in the operator's chart are sufficient and minimal."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pytest

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.garden.components.definitions import GROUPS
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from tests.support.garden import BACKED_UP, COMPLETE, HIGHLY_AVAILABLE, landscape
from tests.support.operator_chart import ACCOUNT

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "patch", "delete")
GATES: Final = {"DisableNginxIngressInGarden": False}
LANDSCAPES: Final = (
    landscape(),
    landscape(HIGHLY_AVAILABLE, BACKED_UP, COMPLETE, feature_gates=GATES),
)


class Access(NamedTuple):
    """The verbs that the operator uses on an object."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


async def denied(admin: Client, accesses: Iterable[Access]) -> list[Access]:
    """Return the accesses that the API server denies the operator."""
    return [access for access in accesses if not await is_allowed(admin, access)]


async def is_allowed(admin: Client, access: Access) -> bool:
    groups = ["serviceaccounts", f"serviceaccounts:{ACCOUNT.namespace}", "authenticated"]
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{ACCOUNT.namespace}:{ACCOUNT.name}",
            "groups": [f"system:{group}" for group in groups],
            "resourceAttributes": access._asdict(),
        },
    }
    return bool(map_at(await admin.create(review), "status")["allowed"])


def accesses(identity: Identity, verbs: Iterable[str]) -> Iterator[Access]:
    gvk, key = identity
    for verb in verbs:
        yield Access(verb, gvk.group, f"{gvk.kind.lower()}s", key.namespace, key.name)


def direct(component: Component) -> set[Identity]:
    """Return the objects that the operator itself applies or deletes."""
    found = set(component.leftovers.direct)
    for built in LANDSCAPES:
        if component.absent(built) is None:
            objects = component.objects(built).direct
            found |= {Identity(GroupVersionKind.of(obj), Key.of(obj)) for obj in objects}
    return found


@pytest.mark.parametrize("component", CATALOG, ids=lambda each: each.name)
async def test_the_direct_objects_of_a_component_can_be_maintained(
    runtime: Client, granted: ClusterConfig, component: Component
) -> None:
    needed = [
        access for identity in direct(component) for access in accesses(identity, (*READ, *WRITE))
    ]

    assert await denied(runtime, needed) == []


async def test_managed_resources_and_their_secrets_can_be_maintained_in_all_namespaces(
    runtime: Client, granted: ClusterConfig
) -> None:
    namespaces = {
        managed.namespace
        for built in LANDSCAPES
        for component in CATALOG
        for managed in component.objects(built).managed
    }
    assert namespaces > {"garden"}
    needed = [
        *(
            Access(verb, MANAGED_RESOURCE.group, "managedresources", namespace, "a")
            for namespace in namespaces
            for verb in (*READ, *WRITE, "update")
        ),
        *(
            Access(verb, "", "secrets", namespace, "a")
            for namespace in namespaces
            for verb in ("get", *WRITE)
        ),
    ]

    assert await denied(runtime, needed) == []


async def test_all_accesses_of_flows_and_controllers_are_allowed(
    runtime: Client, granted: ClusterConfig
) -> None:
    extensions, own = "extensions.gardener.cloud", "operator.gardener.cloud"
    needed = [
        *(
            Access(verb, "apiextensions.k8s.io", "customresourcedefinitions", name=name)
            for group in GROUPS
            for name in group.names
            for verb in (*READ, *WRITE)
        ),
        *(
            Access(verb, extensions, resource, namespace, "a")
            for resource, namespace in {
                "backupbuckets": "",
                "backupentries": "",
                "dnsrecords": "garden",
                "extensions": "garden",
            }.items()
            for verb in (*READ, *WRITE)
        ),
        *(
            Access(verb, own, resource, name="a", subresource=subresource)
            for resource in ("gardens", "extensions")
            for subresource in ("", "status")
            for verb in ("patch", "update")
        ),
        *(Access(verb, own, kind) for kind in ("gardens", "extensions") for verb in READ),
        *(Access(verb, "", "namespaces", name="runtime-extension-a") for verb in (*READ, *WRITE)),
        *(Access(verb, "", "secrets", "garden") for verb in READ),
        *(Access(verb, "networking.k8s.io", "networkpolicies", "a") for verb in (*READ, *WRITE)),
        *(Access(v, "autoscaling.k8s.io", "verticalpodautoscalers", "a") for v in (*READ, "patch")),
        Access("create", "events.k8s.io", "events", "default"),
        Access("patch", "events.k8s.io", "events", "default", "a"),
        Access("list", "", "pods", "garden"),
        Access("get", "", "pods", "garden", "a", "log"),
        Access("list", "coordination.k8s.io", "leases"),
        Access("list", "druid.gardener.cloud", "etcdcopybackupstasks"),
        *(Access(verb, "monitoring.coreos.com", "prometheuses", "garden") for verb in READ),
        Access("get", "scheduling.k8s.io", "priorityclasses", name="gardener-garden-system-200"),
    ]

    assert await denied(runtime, needed) == []


@pytest.mark.parametrize(
    "access",
    [
        Access("list", "", "secrets"),
        Access("list", "", "secrets", "kube-system"),
        Access("get", "", "configmaps", "kube-system", "a"),
        Access("create", "", "pods", "garden"),
        Access("create", "", "pods", "garden", "a", "exec"),
        Access("create", "apps", "deployments", "kube-system"),
        Access("delete", "", "nodes", name="a"),
        Access("delete", "", "persistentvolumeclaims", "garden", "a"),
        Access("delete", "operator.gardener.cloud", "gardens", name="a"),
        Access("create", "", "serviceaccounts", "garden", "a", "token"),
        Access("escalate", "rbac.authorization.k8s.io", "clusterroles", name="a"),
        Access("bind", "rbac.authorization.k8s.io", "clusterroles", name="cluster-admin"),
        Access("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
        Access("escalate", "rbac.authorization.k8s.io", "roles", "garden", "a"),
        Access("impersonate", "", "users", name="a"),
        Access("update", "coordination.k8s.io", "leases", "garden", "other"),
        Access(
            "patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", name="a"
        ),
    ],
    ids=lambda access: f"{access.verb} {access.resource}",
)
async def test_no_other_access_is_allowed(
    runtime: Client, granted: ClusterConfig, access: Access
) -> None:
    assert not await is_allowed(runtime, access)
