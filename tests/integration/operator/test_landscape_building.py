"""A landscape is built from objects in a real API server (spec 20 §8, §10)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, name_of
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.components import authorities
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.components.virtual_access import GENERIC_KUBECONFIG
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.garden.landscape.errors import OperatorError, ReferencesMissing
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.operator.run.build import build
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import Clock, SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.world import RecordingClient
from tests.support.garden import GARDEN, landscape

COMPONENTS: Final = (ETCDS, GENERIC_KUBECONFIG)


def template(garden: Garden) -> Landscape:
    return replace(landscape(), garden=garden, credentials=Credentials())


@pytest.fixture
async def client(garden_sandbox: Sandbox) -> AsyncIterator[RecordingClient]:
    """Yield a client of a cluster with an empty namespace `garden`."""
    async with RecordingClient.connect(load(garden_sandbox.kubeconfig)) as client:
        await _empty(client)
        client.taken()
        yield client
        await _empty(client)


async def _empty(client: Client) -> None:
    for secret in await client.list(SECRET, "garden"):
        await client.delete(SECRET, Key.of(secret))


async def built(client: Client, garden: JsonObject = GARDEN, clock: Clock | None = None) -> Run:
    """Return a run that has generated the authorities and the credentials of two components."""
    clock = clock or SystemClock()
    run = Run(
        client=client,
        clock=clock,
        deployer=Deployer(client),
        virtual=VirtualCluster(client),
        built=await build(client, garden, template, clock),
    )
    await run.built.generate_authorities()
    for component in COMPONENTS:
        await run.generate(component.credentials(run.current()))
    return run


def names(found: Run) -> dict[str, str]:
    generated = found.current().credentials.generated
    return {name: each.current.object_name for name, each in generated.items()}


async def test_the_second_run_neither_generates_nor_changes_anything(
    client: RecordingClient,
) -> None:
    first = await built(client)
    assert {name for name in names(first) if name.startswith("ca")} == {
        authorities.RUNTIME,
        authorities.BASIC_AUTH,
        *authorities.ON_DEMAND,
    }
    assert client.taken()

    second = await built(client)
    assert client.taken() == []
    assert names(second) == names(first)
    rendered = [ETCDS.objects(each.current()) for each in (first, second)]
    assert rendered[0] == rendered[1]

    assert await second.built.secrets.cleanup() == []


async def test_after_a_month_only_the_monthly_authorities_are_new(
    client: RecordingClient,
) -> None:
    class Later(SystemClock):
        def now(self):  # type: ignore[no-untyped-def] # as declared
            return super().now() + timedelta(days=25)

    first, later = await built(client), await built(client, clock=Later())
    changed = {name for name, found in names(later).items() if names(first)[name] != found}
    assert changed == {authorities.RUNTIME, authorities.BASIC_AUTH}
    bundle = later.current().credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    assert bundle.count(b"BEGIN CERTIFICATE") == 2


async def test_the_credentials_of_an_existing_landscape_are_adopted(
    client: RecordingClient,
) -> None:
    first = await built(client)
    old = first.current().credentials.current("ca")
    await _empty(client)
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "from-elsewhere",
                "namespace": "garden",
                "labels": {"secrets-manager-use-data-for-name": "ca"},
            },
            "data": old.obj["data"],
        }
    )
    adopted = (await built(client)).current().credentials.current("ca")
    assert adopted.data == old.data
    assert labels_of(adopted.obj)["name"] == "ca"


async def test_all_missing_references_are_reported_together(client: RecordingClient) -> None:
    patch = {
        "spec": {
            "virtualCluster": {
                "etcd": {"main": {"backup": {"provider": "x", "secretRef": {"name": "backup"}}}},
                "kubernetes": {
                    "kubeAPIServer": {
                        "auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}
                    }
                },
            }
        }
    }
    with pytest.raises(ReferencesMissing) as raised:
        await built(client, apply_merge_patch(GARDEN, patch))
    assert str(raised.value) == (
        "the Garden names objects that do not exist: "
        "Secret garden/backup (spec.virtualCluster.etcd.main.backup.secretRef.name); "
        "ConfigMap garden/policy (spec.virtualCluster.kubernetes.kubeAPIServer.auditConfig."
        "auditPolicy.configMapRef.name); create them, or correct the fields"
    )
    assert client.taken() == []


async def test_several_wildcard_certificates_are_an_error_with_their_names(
    client: RecordingClient,
) -> None:
    for name in ("a", "b"):
        labels = {"gardener.cloud/role": "garden-cert"}
        metadata = {"name": name, "namespace": "garden", "labels": labels}
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    with pytest.raises(OperatorError, match=r"\(garden/a, garden/b\)"):
        await built(client)
    await client.delete(SECRET, Key("garden", "b"))
    found = await built(client)
    certificate = found.current().wildcard_certificate
    assert certificate is not None
    assert name_of(certificate) == "a"
