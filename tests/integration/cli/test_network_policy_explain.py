"""`pergola network-policy explain`: the callers of a Service, and the existing policies."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.api.kinds import NETWORK_POLICY, SERVICE
from pergola.api.objects import JsonObject, Key
from pergola.cli.network_policy.app import UsageError, explain
from pergola.controllers.network_policy import Settings, network_policy
from pergola.controllers.network_policy.explanation import ExplanationError
from pergola.controllers.network_policy.explanation import explain as explanation
from pergola.kube.client import Client
from pergola.runtime.metrics import Metrics
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.waiting import running, settled

L = "networking.resources.gardener.cloud/"


def named(name: str) -> JsonObject:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


@pytest.fixture
async def peer(cluster_client: Client) -> AsyncIterator[str]:
    """Yield another namespace."""
    name = await create_namespace(cluster_client, "explain-peer")
    yield name
    await clear_namespace(cluster_client, name)


class Asking:
    """A Service `web` in a namespace, and the command."""

    def __init__(self, client: Client, namespace: str, kubeconfig: Path) -> None:
        self.client, self.namespace, self._kubeconfig = client, namespace, kubeconfig

    async def serve(self, **annotations: str) -> None:
        marks = {L + name.replace("_", "-"): text for name, text in annotations.items()}
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web", "namespace": self.namespace, "annotations": marks},
                "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
            }
        )

    async def put_caller(self, *keys: str, namespace: str = "") -> None:
        """Create a Pod with these labels of callers."""
        labels = {L + key: "allowed" for key in keys}
        await self.client.create(pod(namespace or self.namespace, **labels))

    async def reconcile(self, *peers: str) -> None:
        """Run the controller until its queue is empty, for this namespace and its peers only.

        Elsewhere it would delete the policies of other tests: it does not serve their Services.
        """
        settings = Settings(namespaces=(self.namespace, *peers))
        unit = network_policy(self.client, settings, metrics=Metrics())
        async with running(unit):
            await settled(unit, self.client)

    async def json(self, *arguments: str) -> JsonObject:
        answer: JsonObject = json.loads(await self._said("-o", "json", *arguments))
        return answer

    async def table(self) -> list[list[str]]:
        """Return the cells of each line, which are at least three spaces apart."""
        said = await self._said()
        return [[c.strip() for c in line.split("   ") if c.strip()] for line in said.splitlines()]

    async def _said(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from pergola.cli.network_policy.app import app; app()",
            "explain",
            f"{self.namespace}/web",
            "--kubeconfig",
            self._kubeconfig,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()


@pytest.fixture
def asking(cluster_client: Client, namespace: str, kubeconfig: Path) -> Asking:
    return Asking(cluster_client, namespace, kubeconfig)


def pod(namespace: str, **labels: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app:1.0.0"}]},
    }


def states(answer: JsonObject) -> dict[str, str]:
    return {policy["name"]: policy["state"] for policy in answer["policies"]}


async def test_each_caller_is_listed_with_its_reason_and_policies(
    asking: Asking, peer: str
) -> None:
    here, alias = asking.namespace, "from-scrapers-allowed-ports"
    await asking.serve(
        namespace_selectors=json.dumps([named(peer)]),
        from_scrapers_allowed_ports='[{"port": 9000, "endPort": 9009}]',
        from_world_to_ports="[]",
    )
    await asking.client.create(pod(here, app="web"))
    await asking.put_caller("to-web-tcp-8080", "to-scrapers")
    await asking.put_caller(f"to-{here}-web-tcp-8080", namespace=peer)
    await asking.put_caller(f"to-{here}-web-tcp-8080", f"to-{here}-scrapers", namespace=peer)
    await asking.reconcile(peer)
    answer = await asking.json()
    assert answer["service"]["selector"] == "app=web"
    assert (answer["service"]["pods"], answer["refusal"], answer["problems"]) == (1, "", [])
    assert [
        (c["kind"], c["namespace"], c["label"].removeprefix(L), c["ports"], c["pods"])
        for c in answer["callers"]
    ] == [
        ("port", here, "to-web-tcp-8080", ["TCP 8080"], 1),
        ("port", peer, f"to-{here}-web-tcp-8080", ["TCP 8080"], 2),
        ("alias", here, "to-scrapers", ["TCP 9000-9009"], 1),
        ("alias", peer, f"to-{here}-scrapers", ["TCP 9000-9009"], 1),
        ("world", "", "", [], None),
    ]
    because = [c["because"].removeprefix(L) for c in answer["callers"]]
    assert because == ["spec.ports", "namespace-selectors", alias, alias, "from-world-to-ports"]
    assert answer["callers"][1]["policies"] == [
        {
            "namespace": here,
            "name": f"ingress-to-web-tcp-8080-from-{peer}",
            "state": "present",
            "owner": None,
        },
        {
            "namespace": peer,
            "name": f"egress-to-{here}-web-tcp-8080",
            "state": "present",
            "owner": None,
        },
    ]
    assert len(answer["policies"]) == 9
    assert set(states(answer).values()) == {"present"}


async def test_each_kind_of_wrong_policy_has_its_own_state(asking: Asking) -> None:
    await asking.client.create(
        {
            "apiVersion": NETWORK_POLICY.api_version,
            "kind": NETWORK_POLICY.kind,
            "metadata": {"name": "ingress-to-web-tcp-8080", "namespace": asking.namespace},
            "spec": {"podSelector": {}, "ingress": [{}]},
        }
    )
    await asking.serve(
        from_world_to_ports="[]",
        from_old_allowed_ports='[{"port": 1}]',
        from_ends_allowed_ports='[{"port": 2}]',
    )
    await asking.put_caller("to-web-tcp-8080", "to-old", "to-ends")
    assert states(await asking.json()) == {
        "ingress-to-web-tcp-8080": "foreign",
        "egress-to-web-tcp-8080": "missing",
        "ingress-to-web-tcp-1-via-old": "missing",
        "egress-to-web-tcp-1-via-old": "missing",
        "ingress-to-web-tcp-2-via-ends": "missing",
        "egress-to-web-tcp-2-via-ends": "missing",
        "ingress-to-web-from-world": "missing",
    }
    await asking.client.delete(NETWORK_POLICY, Key(asking.namespace, "ingress-to-web-tcp-8080"))
    await asking.reconcile()
    world = Key(asking.namespace, "ingress-to-web-from-world")
    await asking.client.patch(NETWORK_POLICY, world, {"spec": {"ingress": []}})
    await asking.client.delete(NETWORK_POLICY, Key(asking.namespace, "egress-to-web-tcp-8080"))
    broken = {f"{L}from-old-allowed-ports": "[{", f"{L}from-ends-allowed-ports": None}
    patch = {"metadata": {"annotations": broken}}
    await asking.client.patch(SERVICE, Key(asking.namespace, "web"), patch)
    answer = await asking.json()
    assert states(answer) == {
        "ingress-to-web-tcp-8080": "present",
        "egress-to-web-tcp-8080": "missing",
        "ingress-to-web-tcp-1-via-old": "kept",
        "egress-to-web-tcp-1-via-old": "kept",
        "ingress-to-web-tcp-2-via-ends": "superfluous",
        "egress-to-web-tcp-2-via-ends": "superfluous",
        "ingress-to-web-from-world": "differs",
    }
    (problem,) = answer["problems"]
    assert problem.startswith(f"annotation {L}from-old-allowed-ports: must be JSON")


@pytest.mark.soak("commands")
async def test_foreign_policies_for_the_same_pods_are_named(asking: Asking) -> None:
    def theirs(name: str, selector: JsonObject, *rules: JsonObject) -> JsonObject:
        return {
            "apiVersion": NETWORK_POLICY.api_version,
            "kind": NETWORK_POLICY.kind,
            "metadata": {"name": name, "namespace": asking.namespace},
            "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": list(rules)},
        }

    await asking.client.create(theirs("deny-all", {}))
    await asking.client.create(theirs("allow-all", {}, {}))
    await asking.client.create(theirs("allow-db", {"matchLabels": {"app": "db"}}, {}))
    await asking.serve()
    assert (await asking.json())["others"] == ["allow-all"]


@pytest.mark.soak("commands")
async def test_the_configuration_has_the_same_effect_as_in_the_controller(
    asking: Asking, tmp_path: Path
) -> None:
    await asking.client.create(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "door", "namespace": asking.namespace},
            "spec": {
                "rules": [
                    {
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "web", "port": {"number": 80}}},
                                }
                            ]
                        }
                    }
                ]
            },
        }
    )
    await asking.serve()
    config = tmp_path / "config.yaml"

    async def with_settings(**settings: object) -> JsonObject:
        controllers = {"networkPolicy": {"enabled": True, **settings}}
        file = {
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "leaderElection": {"leaderElect": False},
            "controllers": controllers,
        }
        config.write_text(json.dumps(file))
        return await asking.json("--config", str(config))

    selectors = [named("somewhere-else")]
    answer = await with_settings(namespaceSelectors=selectors)
    assert answer["refusal"].endswith(
        "is not selected by controllers.networkPolicy.namespaceSelectors"
    )
    assert (answer["callers"], answer["policies"]) == ([], [])

    for changes, state in (({}, "not needed"), ({"onlyForMatchingPods": False}, "missing")):
        answer = await with_settings(**changes)
        assert [policy["state"] for policy in answer["callers"][0]["policies"]] == [state] * 2

    pods = {"matchLabels": {"app": "nginx"}}
    ingress = {"namespace": asking.namespace, "podSelector": pods}
    answer = await with_settings(ingressControllerSelector=ingress)
    ours, door = answer["callers"]
    assert (ours["kind"], door["kind"], door["because"]) == ("port", "ingress", "Ingress door")
    assert (door["selector"], door["ports"], door["label"]) == ("app=nginx", ["TCP 8080"], "")


@pytest.mark.soak("commands")
async def test_the_table_is_written_for_people(asking: Asking) -> None:
    await asking.serve(from_world_to_ports='[{"port": "http"}]', from_x_allowed_ports="1")
    await asking.put_caller("to-web-tcp-8080")
    await asking.reconcile()
    await asking.client.delete(NETWORK_POLICY, Key(asking.namespace, "egress-to-web-tcp-8080"))
    here = asking.namespace
    assert await asking.table() == [
        [f"Service {here}/web selects app=web: 0 pods now"],
        [],
        ["WHO", "IN", "PORT", "PODS", "POLICIES", "BECAUSE OF"],
        ["to-web-tcp-8080", here, "TCP 8080", "1", "1 of 2 missing", "spec.ports"],
        ["everybody", "anywhere", "TCP http", "present", "from-world-to-ports"],
        [f"Labels have the value allowed; they and annotations begin with {L}"],
        [],
        ["NAMESPACE", "POLICY", "STATE"],
        [here, "egress-to-web-tcp-8080", "missing"],
        [here, "ingress-to-web-from-world", "present"],
        [here, "ingress-to-web-tcp-8080", "present"],
        [],
        ["PROBLEM", f"annotation {L}from-x-allowed-ports: must be a JSON list of ports"],
    ]


@pytest.mark.soak("commands")
async def test_an_unexplainable_object_is_reported_in_one_sentence(
    cluster_client: Client, namespace: str
) -> None:
    with pytest.raises(ExplanationError, match=f"Service {namespace}/web does not exist"):
        await explanation(cluster_client, Key(namespace, "web"), Settings())
    elsewhere = Settings(namespaces=("elsewhere",))
    with pytest.raises(ExplanationError, match="is not among"):
        await explanation(cluster_client, Key(namespace, "web"), elsewhere)


@pytest.mark.parametrize("name", ["", "/web", "a/", "a/b/c"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f'"{name}" is not a Service: use NAMESPACE/NAME'):
        explain(name)
