"""`pergola explain` with a cluster: it reads missing facts there, and writes nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import NAMESPACE, POD
from pergola.api.objects import JsonObject, Key
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.explain.command import ExplainError, explain
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml_writer import dump

CONFIG: JsonObject = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": False},
    "webhooks": {
        "projectedTokenMount": {"enabled": True},
        "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    },
}


async def said(capsys: pytest.CaptureFixture[str], *target: str, **arguments: Any) -> JsonObject:
    await asyncio.to_thread(explain, *target, output="json", **arguments)
    (answer,) = orjson.loads(capsys.readouterr().out)
    found: JsonObject = {
        entry["name"].removesuffix(".resources.gardener.cloud"): entry
        for entry in answer["webhooks"]
    }
    return found


def pod(namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "serviceAccountName": "quiet",
            "automountServiceAccountToken": True,
            "containers": [{"name": "a", "image": "web"}],
        },
    }


def account(namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "quiet", "namespace": namespace},
        "automountServiceAccountToken": False,
    }


async def label(client: Client, namespace: str) -> None:
    labels = {"metadata": {"labels": {"gardener.cloud/role": "shoot"}}}
    await client.patch(NAMESPACE, Key("", namespace), labels)


@pytest.fixture
def given(tmp_path: Path, kubeconfig: Path) -> dict[str, Any]:
    config = tmp_path / "config.yaml"
    config.write_text(dump(CONFIG))
    return {"config": config, "cluster": ScopeOptions(kubeconfig=kubeconfig)}


def within(given: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    """Return the options for one namespace, or for all."""
    scope = {"namespace": namespace, "all_namespaces": not namespace}
    return {**given, "cluster": replace(given["cluster"], **scope)}


async def test_a_file_is_explained_with_facts_from_the_cluster(
    cluster_client: Client,
    namespace: str,
    tmp_path: Path,
    given: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pod.yaml").write_text(dump(pod(namespace)))
    files = [tmp_path / "pod.yaml"]
    answers = await said(capsys, file=files, **given)
    assert answers["projected-token-mount"]["outcome"] == "not asked"
    assert "gardener.cloud/role" in answers["projected-token-mount"]["because"]
    await label(cluster_client, namespace)
    refusal = (await said(capsys, file=files, **given))["projected-token-mount"]
    assert (refusal["outcome"], refusal["code"]) == ("refused", 404)
    assert '"quiet" not found (' in refusal["because"]
    await cluster_client.create(account(namespace))
    answers = await said(capsys, file=files, **given)
    assert answers["projected-token-mount"]["outcome"] == "changed"
    with pytest.raises(NotFound):
        await cluster_client.get(POD, Key(namespace, "web"))


async def test_a_live_object_is_explained(
    cluster_client: Client,
    namespace: str,
    given: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    await label(cluster_client, namespace)
    await cluster_client.create(account(namespace))
    await cluster_client.create(pod(namespace))
    answers = await said(capsys, "pod/web", **within(given, namespace))
    mounted = answers["projected-token-mount"]
    assert mounted["outcome"] == "unchanged"  # the pod requires the mounted account
    assert mounted["because"].endswith("already contains a token")
    (change,) = answers["pod-scheduler-name"]["changes"]
    assert (change["path"], change["value"]) == ("/spec/schedulerName", "bin-packing-scheduler")


async def test_all_objects_of_a_kind_are_explained(
    cluster_client: Client,
    namespace: str,
    given: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    await cluster_client.create(account(namespace))
    for name in ("a", "b"):
        obj = pod(namespace)
        obj["metadata"] |= {"name": name, "labels": {"app": f"{name}-{namespace}"}}
        await cluster_client.create(obj)

    async def names(where: str = "", selector: str = "") -> list[str]:
        options = within(given, where)
        await asyncio.to_thread(explain, "pods", selector=selector, output="json", **options)
        return [answer["name"] for answer in orjson.loads(capsys.readouterr().out)]

    assert await names(namespace) == ["a", "b"]
    assert await names(namespace, selector=f"app=b-{namespace}") == ["b"]
    assert await names(selector=f"app=a-{namespace}") == ["a"]
    with pytest.raises(ExplainError, match="no pods in namespace"):
        await names(namespace, selector="app=c")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("web", 'no webhook reviews the kind "web"; reviewed kinds are'),
        ("pod/", '"pod/" does not name one object, such as pod/web'),
        ("banana/web", 'no webhook reviews the kind "banana"'),
    ],
)
async def test_a_malformed_name_is_reported_in_one_sentence(
    target: str, problem: str, kubeconfig: Path
) -> None:
    with pytest.raises(ExplainError) as error:
        await asyncio.to_thread(explain, target, cluster=ScopeOptions(kubeconfig=kubeconfig))
    assert problem in str(error.value)
