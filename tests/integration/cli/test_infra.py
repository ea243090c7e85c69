"""`pergola infra`: who manages cluster infrastructure, whether it is complete, and adoption."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.cluster_api import CLUSTER, MANAGED_BY, SOURCE
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.externally_managed.adoption import Adoption
from pergola.externally_managed.kinds import managed_kind
from pergola.externally_managed.sources import PlainSource
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import dump
from pergola.testing.world import config_map
from tests.support.cluster_api import (
    NEW,
    OLD,
    cluster,
    cluster_crd,
    infra_cluster,
    infra_cluster_crd,
    install,
)

PERGOLA = Path(sys.executable).parent / "pergola"
KIND = f"{NEW.kind}.{NEW.group}"
ENDPOINT = {"host": "api.example.org", "port": 6443}
NETWORK: JsonObject = {"endpoint": ENDPOINT, "failureDomains": [{"name": "a"}]}


class Site:
    """One InfraCluster of a provider, and the command."""

    def __init__(self, client: Client, namespace: str, kubeconfig: Path) -> None:
        self.client = client
        self.namespace = namespace
        self.kubeconfig = kubeconfig
        self.key = Key(namespace, "demo")

    async def create(
        self, annotations: dict[str, str] | None = None, *, done: bool = True, **spec: Any
    ) -> None:
        obj = infra_cluster(NEW, "demo", self.namespace, annotations, **spec)
        obj["metadata"]["finalizers"] = [f"newcluster.{NEW.group}"]
        await self.client.create(obj)
        await self.client.create(cluster("demo", self.namespace, NEW))
        if done:
            status = {"initialization": {"provisioned": True}}
            await self.client.patch(NEW, self.key, {"status": status}, subresource="status")

    async def describe(self, network: JsonObject) -> None:
        described = config_map("net", self.namespace)
        await self.client.create({**described, "data": {"network.yaml": dump(network)}})

    def run(self, command: str, *arguments: str, answer: str = "") -> tuple[int, str]:
        """Return the exit code and the output."""
        kind = () if "--kind" in arguments else ("--kind", KIND)
        return self.run_plain(command, "demo", *kind, *arguments, answer=answer)

    def run_plain(self, command: str, *arguments: str, answer: str = "") -> tuple[int, str]:
        """Run the command without the name and kind of the InfraCluster."""
        line = [str(PERGOLA), "infra", command]
        line += ["--kubeconfig", str(self.kubeconfig), *arguments]
        line += [] if "-A" in arguments else ["-n", self.namespace]
        done = subprocess.run(line, capture_output=True, text=True, input=answer, check=False)
        return done.returncode, done.stdout + done.stderr

    async def manager(self) -> str | None:
        return annotations_of(await self.client.get(NEW, self.key)).get(MANAGED_BY)

    async def remove(self) -> None:
        """Release the object: its namespace could not be deleted otherwise."""
        with suppress(NotFound):  # not all tests create it
            await self.client.patch(NEW, self.key, {"metadata": {"finalizers": None}})


@pytest.fixture
async def site(cluster_client: Client, namespace: str, kubeconfig: Path) -> AsyncIterator[Site]:
    await install(cluster_client, cluster_crd(), infra_cluster_crd(OLD), infra_cluster_crd(NEW))
    found = Site(cluster_client, namespace, kubeconfig)
    yield found
    await found.remove()


async def test_a_complete_object_has_no_findings(site: Site) -> None:
    await site.describe(NETWORK)
    await site.create({SOURCE: "configmap/net"}, controlPlaneEndpoint=ENDPOINT)
    code, said = site.run("check")
    assert (code, said) == (0, f"NewCluster {site.key} and its network are complete\n")


async def test_all_problems_are_reported_and_set_the_exit_code(site: Site) -> None:
    await site.describe({"endpoint": {"host": "other.example.org", "port": 443}})
    await site.create({SOURCE: "configmap/net"}, done=False, controlPlaneEndpoint=ENDPOINT)
    await site.client.patch(CLUSTER, site.key, {"spec": {"infrastructureRef": {"name": "x"}}})
    code, said = site.run("check")
    assert code == 1
    assert "names NewCluster.infrastructure.cluster.x-k8s.io x" in said
    assert "its provider has not reported that it is ready" in said
    assert '"api.example.org", but the network has "other.example.org"' in said


@pytest.mark.soak("commands")
async def test_the_status_names_the_manager_and_why_the_object_is_not_ready(site: Site) -> None:
    await site.create({MANAGED_BY: ""}, done=False)
    code, said = site.run("status")
    assert code == 0
    assert "an external manager" in said
    assert "error: spec.controlPlaneEndpoint has no host and port" in said
    code, said = site.run("status", "-o", "json")
    reported = orjson.loads(said)
    assert (reported["managedBy"], reported["ready"], reported["endpoint"]) == ("", False, None)
    assert reported["contract"] == "v1beta2"
    assert {finding["severity"] for finding in reported["findings"]} == {"error", "warning"}


async def test_adoption_explains_itself_asks_and_sets_the_annotation(site: Site) -> None:
    await site.describe(NETWORK)
    await site.create(controlPlaneEndpoint=ENDPOINT)
    code, said = site.run("adopt", "--source", "configmap/net", answer="no\n")
    assert code == 1
    assert "nothing was changed" in said
    assert await site.manager() is None
    code, said = site.run("adopt", "--source", "configmap/net", answer="demo\n")
    assert code == 0, said
    assert "finalizer newcluster.infrastructure.cluster.x-k8s.io stays" in said
    assert "No other writer changed it." in said
    assert await site.manager() == "pergola"
    assert annotations_of(await site.client.get(NEW, site.key))[SOURCE] == "configmap/net"


@pytest.mark.soak("commands")
async def test_adoption_without_confirmation_says_how_to_confirm(site: Site) -> None:
    await site.describe(NETWORK)
    await site.create(controlPlaneEndpoint=ENDPOINT)
    code, said = site.run("adopt", "--source", "configmap/net", answer="")
    assert code == 1
    assert "add --yes" in said
    assert "Traceback" not in said
    assert await site.manager() is None


@pytest.mark.soak("commands")
async def test_adoption_warns_that_the_object_will_not_become_ready(site: Site) -> None:
    await site.create(controlPlaneEndpoint=ENDPOINT)
    _, said = site.run("adopt", answer="no\n")
    assert f"it will be False until annotation {SOURCE} names the network" in said
    assert "--yes skips this question" in said


async def test_a_retry_of_the_provider_right_after_the_adoption_is_not_an_error(
    site: Site,
) -> None:
    await site.describe(NETWORK)
    await site.create(controlPlaneEndpoint=ENDPOINT)
    managed = await managed_kind(site.client, NEW.group_kind)
    source = PlainSource(site.client)
    adoption = Adoption(site.client, managed, "pergola", source, reference="configmap/net")
    adopted = await adoption.patch(await adoption.prepare(infra_cluster_crd(NEW), site.key))
    late = {"apiVersion": NEW.api_version, "kind": NEW.kind, "spec": {"retried": True}}
    metadata = {"name": site.key.name, "namespace": site.key.namespace}
    await site.client.apply({**late, "metadata": metadata}, manager="foo-controller")
    # The watch begins with the adoption: however late it is, it reports the write as an early one.
    writers = await adoption.writers_after(adopted, 4.0, 4.5)
    assert (writers.early, writers.late) == (["foo-controller"], [])


@pytest.mark.soak("commands")
async def test_aws_is_a_source_of_awsclusters_only_and_the_help_says_so(site: Site) -> None:
    await site.create(controlPlaneEndpoint=ENDPOINT)
    code, said = site.run("adopt", "--yes", "--source", "aws")
    assert code == 1
    assert "must be configmap/<name> or secret/<name>" in said
    _, said = site.run_plain("adopt", "--help")
    assert "aws for AWSClusters" in " ".join(said.split())


@pytest.mark.soak("commands")
async def test_the_names_and_options_of_kubectl_are_accepted(site: Site) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    code, said = site.run_plain("status", "newcluster/demo", "-o", "json")
    assert code == 0, said
    assert orjson.loads(said)["managedBy"] == "terraform"
    for options in ([], ["-A"], ["-l", "cluster.x-k8s.io/cluster-name=demo"]):
        code, said = site.run_plain("status", "--kind", KIND, "-o", "json", *options)
        assert code == 0, said
        names = [(row["namespace"], row["name"]) for row in orjson.loads(said)]
        assert (site.namespace, "demo") in names
    code, said = site.run_plain("status", "--kind", KIND)
    assert said.splitlines()[0].split()[:3] == ["NAMESPACE", "NAME", "MANAGEDBY"]
    code, said = site.run_plain("status", "demo")
    assert (code, said.startswith("pergola: which kind?")) == (1, True)


async def test_adoption_is_refused_with_the_reason(site: Site) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    code, said = site.run("adopt", "--yes")
    assert code == 1
    assert 'is already managed by "terraform"; add --take-over' in said
    await site.client.delete(CLUSTER, site.key)
    code, said = site.run("adopt", "--yes", "--take-over")
    assert f"Cluster {site.key} does not exist" in said
    await site.client.create(cluster("demo", site.namespace, NEW))
    code, said = site.run("adopt", "--yes", "--take-over", "--source", "configmap/net")
    assert f"ConfigMap {site.namespace}/net" in said
    assert "add --force" in said
    await site.client.delete(NEW, site.key)
    code, said = site.run("adopt", "--yes", "--take-over")
    assert "is being deleted" in said
    assert await site.manager() == "terraform"


@pytest.mark.soak("commands")
async def test_mistakes_are_reported_in_one_sentence(site: Site) -> None:
    code, said = site.run("status", "--kind", "Nothing")
    assert code == 1
    assert said.startswith('pergola: "Nothing" is not a kind with its group')
    code, said = site.run("status", "--kind", "FooCluster.example.org")
    assert "CustomResourceDefinition fooclusters.example.org does not exist" in said
    code, said = site.run("status")
    assert code == 1
    assert said.count("\n") == 1
