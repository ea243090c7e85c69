"""Predictions of whether an apply changes anything agree with the API server."""

import copy
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, JsonObject, Key, resource_version_of
from pergola.kube.applied import is_applied
from pergola.kube.client import Client

MANAGER: Final = "tester"


def config_map(namespace: str, **data: str) -> JsonObject:
    metadata = {"name": "a", "namespace": namespace, "labels": {"x": "1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod_template(namespace: str) -> JsonObject:
    """Return a workload that no controller modifies."""
    container = {
        "name": "a",
        "image": "i",
        "args": ["--x", "--y"],
        "env": [{"name": "X", "value": "1"}],
        "ports": [{"containerPort": 80}],
    }
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "a", "namespace": namespace, "finalizers": ["example.org/a"]},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
        },
    }


async def agrees(client: Client, desired: JsonObject) -> bool:
    """Apply an object, check that the prediction was right, and return whether it changed."""
    gvk, key = GroupVersionKind.of(desired), Key.of(desired)
    before = await client.find(gvk, key)
    foreseen = before is not None and is_applied(desired, before, MANAGER)
    after = await client.apply(desired, manager=MANAGER, force=True)
    # Owning an empty list that the server does not store does not change the object.
    assert not foreseen or content(before) == content(after), (desired, before, after)
    changed = before is None or resource_version_of(before) != resource_version_of(after)
    assert is_applied(desired, after, MANAGER), (desired, after)
    return changed


def content(obj: JsonObject | None) -> JsonObject | None:
    """Return everything except the ownership of fields."""
    if obj is None:
        return None
    ownership = {"managedFields", "resourceVersion"}
    metadata = {name: each for name, each in obj["metadata"].items() if name not in ownership}
    return {**obj, "metadata": metadata}


async def test_an_applied_object_is_not_applied_again(
    cluster_client: Client, namespace: str
) -> None:
    for desired in (config_map(namespace, a="1"), pod_template(namespace)):
        assert await agrees(cluster_client, desired)
        assert not await agrees(cluster_client, desired)
        await cluster_client.patch(
            GroupVersionKind.of(desired), Key.of(desired), {"metadata": {"finalizers": None}}
        )


async def test_a_field_that_is_no_longer_desired_is_removed(
    cluster_client: Client, namespace: str
) -> None:
    await agrees(cluster_client, config_map(namespace, a="1", b="2"))
    assert await agrees(cluster_client, config_map(namespace, a="1"))
    live = await cluster_client.get(CONFIG_MAP, Key(namespace, "a"))
    assert live["data"] == {"a": "1"}


async def test_fields_added_by_other_writers_do_not_count(
    cluster_client: Client, namespace: str
) -> None:
    desired = config_map(namespace, a="1")
    await agrees(cluster_client, desired)
    theirs = {"data": {"b": "2"}, "metadata": {"labels": {"y": "2"}}}
    live = await cluster_client.patch(CONFIG_MAP, Key(namespace, "a"), theirs)
    assert is_applied(desired, live, MANAGER)
    live = await cluster_client.patch(CONFIG_MAP, Key(namespace, "a"), {"data": {"a": "2"}})
    assert not is_applied(desired, live, MANAGER)


async def test_an_object_that_another_manager_created_is_applied_once(
    cluster_client: Client, namespace: str
) -> None:
    desired = config_map(namespace, a="1")
    live = await cluster_client.create(desired)
    assert not is_applied(desired, live, MANAGER)
    assert await agrees(cluster_client, desired)


containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab"), "image": st.sampled_from("ij")},
        optional={
            "args": st.lists(st.sampled_from(["--x", "--y"]), max_size=2),
            "env": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from("XY")}, optional={"value": st.sampled_from("12")}
                ),
                unique_by=lambda each: each["name"],
                max_size=2,
            ),
            "ports": st.lists(
                st.fixed_dictionaries({"containerPort": st.integers(80, 81)}),
                unique_by=lambda each: each["containerPort"],
                max_size=2,
            ),
            "resources": st.fixed_dictionaries(
                {}, optional={"requests": st.fixed_dictionaries({"cpu": st.sampled_from(["1m"])})}
            ),
        },
    ),
    unique_by=lambda each: each["name"],
    min_size=1,
    max_size=2,
)


@given(versions=st.lists(containers, min_size=2, max_size=4))
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_every_change_of_a_workload_is_predicted(
    cluster_client: Client, namespace: str, versions: list[list[dict[str, Any]]]
) -> None:
    for version in versions:
        desired = copy.deepcopy(pod_template(namespace))
        del desired["metadata"]["finalizers"]
        desired["template"]["spec"]["containers"] = version
        await agrees(cluster_client, desired)


@pytest.mark.parametrize("live", [{}, {"metadata": {"managedFields": [{"manager": MANAGER}]}}])
def test_an_object_without_managed_fields_is_applied(live: JsonObject) -> None:
    assert not is_applied({}, live, MANAGER)


async def test_an_item_removed_from_an_atomic_list_is_removed(
    cluster_client: Client, namespace: str
) -> None:
    """Rules of roles and peers of policies must not outlive the manifest."""
    peers: list[JsonObject] = [
        {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32", "192.0.2.2/32"]}},
        {"namespaceSelector": {"matchLabels": {"a": "1", "b": "2"}}, "podSelector": {}},
    ]
    await agrees(cluster_client, policy(namespace, peers))
    assert not await agrees(cluster_client, policy(namespace, peers))
    smaller: list[list[JsonObject]] = [
        [{"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}}, peers[1]],
        [peers[0], {"namespaceSelector": {"matchLabels": {"a": "1"}}, "podSelector": {}}],
        peers[:1],
        peers[1:],
    ]
    for desired in smaller:
        assert await agrees(cluster_client, policy(namespace, desired))
        assert not await agrees(cluster_client, policy(namespace, desired))
        await agrees(cluster_client, policy(namespace, peers))


def policy(namespace: str, peers: list[JsonObject]) -> JsonObject:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [{"to": peers, "ports": [{"port": 53}]}],
        },
    }


async def test_a_rule_removed_from_a_role_is_removed(
    cluster_client: Client, namespace: str
) -> None:
    def role(*verbs: list[str]) -> JsonObject:
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "a", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": each} for each in verbs],
        }

    await agrees(cluster_client, role(["get"], ["delete"]))
    assert await agrees(cluster_client, role(["get"]))
    assert not await agrees(cluster_client, role(["get"]))
