"""The kind Network at a real API server: the 'Must hold' lines of spec 40 §1."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.objects import JsonObject, Key
from pergola.extension_api import caller
from pergola.kube.client import Client
from pergola.kube.errors import Invalid
from pergola.kube.yaml import parse
from pergola.runtime.clock import SystemClock
from pergola.testing.crds import install_extension_crds

CALICO = """
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Network
metadata:
  name: my-network
spec:
  ipFamilies:
  - IPv4
  podCIDR: 100.244.0.0/16
  serviceCIDR: 100.32.0.0/13
  type: calico
  providerConfig:
    apiVersion: calico.networking.extensions.gardener.cloud/v1alpha1
    kind: NetworkConfig
    backend: bird
    ipam:
      cidr: usePodCIDR
      type: host-local
"""
NAME = "my-network"


@pytest.fixture(autouse=True)
async def served(cluster_client: Client) -> None:
    await install_extension_crds(cluster_client)


def network(namespace: str, **spec: Any) -> JsonObject:
    """Return the contract's calico manifest with an unserved type and changed fields."""
    obj = cast("JsonObject", parse(CALICO))
    merged = {**obj["spec"], "type": "unserved", **spec}
    present = {name: value for name, value in merged.items() if value is not None}
    return {**obj, "metadata": {"name": NAME, "namespace": namespace}, "spec": present}


async def change(client: Client, namespace: str, **spec: Any) -> JsonObject:
    return await client.patch(NETWORK, Key(namespace, NAME), {"spec": spec})


# Must hold 1


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        (
            "calico",
            {
                "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
                "kind": "NetworkConfig",
                "backend": "bird",
                "ipam": {"cidr": "usePodCIDR", "type": "host-local"},
            },
        ),
        (
            "gardenet",
            {
                "apiVersion": "gardenet.networking.extensions.gardener.cloud/v1alpha1",
                "kind": "NetworkConfig",
                "gardenetCustomConfigField": "<value>",
                "ipam": {"cidr": "usePodCIDR", "type": "host-local"},
            },
        ),
        ("unserved", {"overlay": {"enabled": False}, "numbers": [1, 1.5, None, {"a": {}}]}),
    ],
)
async def test_a_network_is_stored_with_its_config_unchanged(
    cluster_client: Client, namespace: str, type_: str, config: JsonObject
) -> None:
    desired = network(namespace, type=type_, providerConfig=config)

    await cluster_client.create(desired)

    stored = await cluster_client.get(NETWORK, Key(namespace, NAME))
    assert stored["spec"] == desired["spec"]
    assert "status" not in stored


async def test_kubectl_shows_type_ranges_and_state(
    cluster_client: Client, namespace: str, kubeconfig: Path
) -> None:
    await cluster_client.create(network(namespace))
    operation = {
        "type": "Create",
        "state": "Succeeded",
        "progress": 100,
        "description": "done",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    patch = {"status": {"lastOperation": operation}}
    await cluster_client.patch(NETWORK, Key(namespace, NAME), patch, subresource="status")

    command = ["kubectl", "--kubeconfig", str(kubeconfig), "-n", namespace, "get", "networks"]
    printed = await asyncio.to_thread(
        subprocess.run, command, check=True, capture_output=True, text=True
    )

    [titles, row] = printed.stdout.splitlines()
    assert titles.split("  ")[0] == "NAME"
    assert [t.strip() for t in titles.split("  ") if t.strip()] == [
        "NAME",
        "TYPE",
        "POD CIDR",
        "SERVICE CIDR",
        "STATUS",
        "AGE",
    ]
    assert row.split()[:5] == [NAME, "unserved", "100.244.0.0/16", "100.32.0.0/13", "Succeeded"]


# Must hold 2


@pytest.mark.parametrize("name", ["type", "podCIDR", "serviceCIDR"])
async def test_the_schema_requires_type_and_ranges(
    cluster_client: Client, namespace: str, name: str
) -> None:
    with pytest.raises(Invalid, match=f"spec.{name}: Required value"):
        await cluster_client.create(network(namespace, **{name: None}))


# Must hold 3


@pytest.mark.parametrize(
    ("before", "after"), [("shoot", "seed"), (None, "seed"), ("", "garden"), ("seed", None)]
)
async def test_the_class_of_a_network_is_immutable(
    cluster_client: Client, namespace: str, before: str | None, after: str | None
) -> None:
    await cluster_client.create(network(namespace, **{"class": before}))

    with pytest.raises(Invalid, match=r"spec\.class: Invalid value: .*Value is immutable"):
        await change(cluster_client, namespace, **{"class": after})


async def test_setting_the_default_class_is_not_a_change(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(network(namespace))

    await change(cluster_client, namespace, **{"class": "shoot"})
    await change(cluster_client, namespace, **{"class": None})


# Must hold 4


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ([["IPv4"], ["IPv4", "IPv6"], ["IPv4"]], None),
        ([["IPv4"], None, ["IPv4"], ["IPv4", "IPv6"], None], None),
        ([["IPv4"]], ["IPv6"]),
        ([None], ["IPv6"]),
        ([["IPv4", "IPv6"]], ["IPv6", "IPv4"]),
        ([["IPv6"]], ["IPv6", "IPv4"]),
        ([["IPv6"]], None),
    ],
)
async def test_families_can_only_change_between_ipv4_and_both(
    cluster_client: Client,
    namespace: str,
    steps: list[list[str] | None],
    refused: list[str] | None,
) -> None:
    first, *further = steps
    await cluster_client.create(network(namespace, ipFamilies=first))
    for families in further:
        await change(cluster_client, namespace, ipFamilies=families)
    if refused is None and steps[0] != ["IPv6"]:
        return

    was, now = " ".join(steps[-1] or ["IPv4"]), " ".join(refused or ["IPv4"])
    with pytest.raises(Invalid) as error:
        await change(cluster_client, namespace, ipFamilies=refused)
    assert (
        "spec.ipFamilies: Forbidden: unsupported IP family update: "
        f"oldIPFamilies=[{was}], newIPFamilies=[{now}]"
    ) in str(error.value)


@pytest.mark.parametrize("families", [["IPv5"], ["IPv4", "IPv6", "IPv4"]])
async def test_other_families_are_refused(
    cluster_client: Client, namespace: str, families: list[str]
) -> None:
    with pytest.raises(Invalid, match=r"spec\.ipFamilies"):
        await cluster_client.create(network(namespace, ipFamilies=families))


@pytest.mark.parametrize("name", ["type", "podCIDR", "serviceCIDR"])
async def test_type_and_ranges_of_a_network_are_immutable(
    cluster_client: Client, namespace: str, name: str
) -> None:
    await cluster_client.create(network(namespace))

    with pytest.raises(Invalid, match=rf"spec\.{name}: Invalid value: .*field is immutable"):
        await change(cluster_client, namespace, **{name: "10.0.0.0/8"})


# Must hold 5; the webhook refuses a changed spec (spec 12 §15.1)


async def test_a_network_under_deletion_can_still_be_written(
    cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, NAME)
    obj = network(namespace)
    obj["metadata"]["finalizers"] = ["extensions.gardener.cloud/network"]
    await cluster_client.create(obj)
    await cluster_client.delete(NETWORK, key)

    await cluster_client.patch(NETWORK, key, {"metadata": {"annotations": {"a": "b"}}})
    await cluster_client.patch(NETWORK, key, {"status": {"state": {"a": 1}}}, subresource="status")
    await cluster_client.patch(NETWORK, key, {"metadata": {"finalizers": None}})

    assert await cluster_client.list(NETWORK, namespace) == []


# Must hold 6


async def test_a_network_without_an_extension_waits_and_the_caller_reports_it(
    cluster_client: Client, namespace: str
) -> None:
    request = await caller.deploy(cluster_client, caller.NETWORK, network(namespace), SystemClock())
    waiting = caller.Waiting(timeout=1)

    with pytest.raises(caller.NotReady) as error:
        await caller.wait_ready(
            cluster_client,
            caller.NETWORK,
            Key(namespace, NAME),
            waiting,
            expected=request.timestamp,
        )

    assert f"Error while waiting for Network {namespace}/{NAME} to become ready" in str(error.value)
    assert "status" not in await cluster_client.get(NETWORK, Key(namespace, NAME))


# Other properties of the kind


async def test_a_status_can_have_all_fields_of_the_contract(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(network(namespace))
    now = "2026-01-01T00:00:00Z"
    status = {
        "ipFamilies": ["IPv4"],
        "providerStatus": {"apiVersion": "a/v1", "kind": "NetworkStatus", "any": {"thing": 1}},
        "conditions": [
            {
                "type": "SystemComponentsHealthy",
                "status": "True",
                "reason": "HealthCheckSuccessful",
                "message": "fine",
                "lastTransitionTime": now,
                "lastUpdateTime": now,
                "codes": ["ERR_CONFIGURATION_PROBLEM"],
            }
        ],
        "lastOperation": {
            "type": "Create",
            "state": "Error",
            "progress": 50,
            "description": "no",
            "lastUpdateTime": now,
        },
        "lastError": {"description": "no", "codes": ["X"], "taskID": "t", "lastUpdateTime": now},
        "observedGeneration": 1,
        "observedTimestamp": now,
        "state": {"ipam": "kubernetes"},
        "resources": [
            {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}
        ],
    }

    patch = {"status": status}
    stored = await cluster_client.patch(NETWORK, Key(namespace, NAME), patch, subresource="status")

    assert stored["status"] == status


async def test_a_cluster_keeps_whole_objects_with_null_values(cluster_client: Client) -> None:
    obj = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {"generateName": "kind-test-"},
        "spec": {
            "cloudProfile": None,
            "seed": None,
            "shoot": {"kind": "Shoot", "spec": {"a": [1]}},
        },
    }

    created = await cluster_client.create(obj)

    try:
        assert created["spec"] == obj["spec"]
    finally:
        await cluster_client.delete(
            NETWORK._replace(kind="Cluster"), Key("", created["metadata"]["name"])
        )
