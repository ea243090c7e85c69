"""Finalizers and their owners."""

import pytest

from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.why import Topic
from pergola.why.finalizers import finalizer_statements, owner_of

AWS = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSCluster")


@pytest.mark.parametrize(
    ("name", "kind", "owner", "removal"),
    [
        (
            "resources.gardener.cloud/gardener-resource-manager-seed",
            MANAGED_RESOURCE,
            "the resource manager of class seed",
            "once the objects of the ManagedResource are gone",
        ),
        (
            "resources.gardener.cloud/gardener-resource-manager",
            SECRET,
            "the resource manager",
            "once no ManagedResource names the object",
        ),
        (
            "extensions.gardener.cloud/network",
            SECRET,
            "the extension that serves the Network",
            "once no Network names the Secret",
        ),
        (
            "awscluster.infrastructure.cluster.x-k8s.io",
            AWS,
            "the provider of AWSClusters",
            "once it has deleted the infrastructure that it created",
        ),
        ("example.org/keep", CONFIG_MAP, "a controller that Pergola does not know", ""),
    ],
)
def test_each_finalizer_has_an_owner_and_a_time_of_removal(
    name: str, kind: GroupVersionKind, owner: str, removal: str
) -> None:
    assert owner_of(name, kind) == (owner, removal)


def test_a_namespace_that_is_being_deleted_reports_its_content() -> None:
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": NAMESPACE.kind,
        "metadata": {"name": "demo", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {
            "conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "message": "2 pods"},
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": ""},
            ]
        },
    }
    found = [*finalizer_statements(namespace)]
    assert {each.topic for each in found} == {Topic.BLOCKED}
    assert [each.subject for each in found] == [
        "finalizer kubernetes",
        "condition NamespaceContentRemaining",
    ]
    assert found[1].text == "2 pods"
