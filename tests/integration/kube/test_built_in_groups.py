"""The groups that discovery regards as built in, compared with a real API server."""

from pergola.api.objects import GroupVersionKind, labels_of, map_at
from pergola.kube.client import Client
from pergola.kube.discovery import BUILT_IN_GROUPS

API_SERVICE = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
MANAGED = "kube-aggregator.kubernetes.io/automanaged"


async def test_built_in_groups_are_those_that_the_server_has_from_its_start(
    cluster_client: Client,
) -> None:
    found: dict[str, set[str]] = {"onstart": set(), "true": set()}
    for obj in await cluster_client.list(API_SERVICE):
        group = str(map_at(obj, "spec").get("group", ""))
        found.setdefault(labels_of(obj).get(MANAGED, ""), set()).add(group)

    assert found["onstart"]
    assert found["onstart"] <= BUILT_IN_GROUPS
    assert not found["true"] & BUILT_IN_GROUPS
