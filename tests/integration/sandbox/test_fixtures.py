from pathlib import Path

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.sandbox import Sandbox


def pod(namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }


async def test_a_pod_can_be_created_in_the_fresh_namespace(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(pod(namespace))

    assert await cluster_client.get(POD, Key(namespace, "one"))


async def test_the_namespace_of_another_test_is_empty(
    cluster_client: Client, namespace: str
) -> None:
    assert await cluster_client.list(POD, namespace) == []
    assert namespace.startswith("test-the-namespace-of-another-test")


def test_the_fixture_kubeconfig_leads_to_the_sandbox(sandbox: Sandbox, kubeconfig: Path) -> None:
    assert kubeconfig == sandbox.kubeconfig


def test_the_shared_sandbox_is_ready(sandbox: Sandbox) -> None:
    assert sandbox.state()["ready"]
