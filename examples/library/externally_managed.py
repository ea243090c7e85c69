"""Infrastructure of Cluster API that others manage: `pergola.externally_managed`."""

from datetime import UTC, datetime

from pergola.api import GroupKind, JsonObject, Key
from pergola.externally_managed import (
    AnnotationGuard,
    Contract,
    Endpoint,
    FailureDomain,
    cluster_to_infra_cluster,
    contract_of,
    endpoint_of,
    failure_domains_of,
    has_watch_label,
    infra_clusters,
    infrastructure_reference,
    is_externally_managed,
    is_paused,
    is_provisioned,
    manager_of,
    owner_cluster,
    registration,
    resource_is_not_externally_managed,
    with_condition,
)
from pergola.runtime import Change

AWS = GroupKind("infrastructure.cluster.x-k8s.io", "AWSCluster")
INFRA: JsonObject = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
    "kind": "AWSCluster",
    "metadata": {
        "namespace": "shop",
        "name": "web",
        "annotations": {"cluster.x-k8s.io/managed-by": "pergola"},
        "labels": {"cluster.x-k8s.io/cluster-name": "web", "cluster.x-k8s.io/watch-filter": "a"},
    },
    "spec": {"controlPlaneEndpoint": {"host": "api.example", "port": 6443}},
    "status": {"ready": True, "failureDomains": {"a": {"controlPlane": True}}},
}
CLUSTER: JsonObject = {
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "kind": "Cluster",
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {
        "infrastructureRef": {
            "apiVersion": INFRA["apiVersion"],
            "kind": "AWSCluster",
            "name": "web",
            "namespace": "shop",
        }
    },
}


def annotation() -> None:
    """Skip objects that another tool manages."""
    assert is_externally_managed(INFRA)
    assert manager_of(INFRA) == "pergola"
    event = Change(Key("shop", "web"), None, INFRA)
    assert not resource_is_not_externally_managed(event)
    guard = AnnotationGuard()
    assert guard is not None
    assert registration(AWS, "awsclusters", ["v1beta2"], "/guard").kind == "validating"


def contract() -> None:
    """Read the fields that core reads, in both generations of the contract."""
    crd = {
        "metadata": {"labels": {"cluster.x-k8s.io/v1beta1": "v1beta2"}},
        "spec": {"versions": [{"name": "v1beta2", "served": True}]},
    }
    found = contract_of(crd)
    assert isinstance(found, Contract)
    assert endpoint_of(INFRA) == Endpoint("api.example", 6443)
    assert failure_domains_of(INFRA, found.version) == [FailureDomain("a")]
    assert is_provisioned(INFRA, found.version)


def conditions() -> None:
    """Write a condition in the format of the contract's version."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    [found] = with_condition(
        [], INFRA, "v1beta1", "Ready", status=True, reason="Up", message="", now=now
    )
    assert found["status"] == "True"


async def mapping() -> None:
    """Map a Cluster to its InfraCluster, and back."""
    assert infrastructure_reference(CLUSTER) == (AWS, Key("shop", "web"))
    assert owner_cluster(INFRA) == Key("shop", "web")
    assert infra_clusters(Change(Key("shop", "web"), None, CLUSTER), AWS) == [Key("shop", "web")]

    async def read(_key: Key) -> JsonObject | None:
        return INFRA

    keys = await cluster_to_infra_cluster(CLUSTER, AWS, read, manages_external=True)
    assert keys == [Key("shop", "web")]


def pauses() -> None:
    """Respect pauses and watch filters."""
    assert is_paused(INFRA, {**CLUSTER, "spec": {"paused": True}})
    assert has_watch_label(INFRA, "a")
