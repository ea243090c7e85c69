"""A Garden in AWS on a real node, served by our extensions.

AWS is moto, and the extensions come from a registry with TLS. Both run on this machine, which makes
their ports available to pods. Everything else runs as pods.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.admission.configurations import VALIDATING
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, JsonValue, Key, map_at, maps_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.charts import ChartReference
from pergola.cloud.aws import AwsClient
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse
from pergola.operator.extension.installations import REGISTRATION
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.providers.aws.resources.record_sets import observe_record_sets
from pergola.sandbox import Sandbox
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.images.catalogue import GARDEN_IMAGES
from pergola.sandbox.node.garden import garden_node
from pergola.sandbox.registry import Registry, registry
from pergola.shipped import CHARTS, EXAMPLES
from pergola.testing.shared import require_images, require_node
from pergola.testing.waiting import until
from tests.support.aws.gardens import BUCKET, IN_BUCKET, KEYS, NAMES, REGION, ZONE
from tests.support.extension_garden import DEPLOYMENT, ExtensionGarden
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import example
from tests.support.gardens import with_values
from tests.support.node_garden import NodeGarden

pytestmark = [pytest.mark.node, pytest.mark.soak("node-aws"), pytest.mark.timeout(4800)]

LOCAL: Final = Key("", "local")
PATIENCE: Final = 1200.0
PUSHED: Final = (
    "extension-aws",
    "networking-calico",
    "networking-cilium",
    "extension-admission-runtime",
    "extension-admission-virtual",
)
ADMISSIONS: Final = {
    "pergola-aws": "aws",
    "networking-calico": "calico",
    "networking-cilium": "cilium",
}
AUTHORITY: Final = "registry-authority"


class Place(NamedTuple):
    """A node with an operator, and the AWS that its pods reach.

    Attributes:
        endpoint: the address of AWS for pods.
        zone: the id of the hosted zone of all names.
    """

    sandbox: Sandbox
    client: Client
    account: AwsClient
    endpoint: str
    zone: str


@pytest.fixture(autouse=True)
def requirements() -> None:
    require_node()
    require_images(*GARDEN_IMAGES)


async def test_a_garden_in_aws_is_served_by_our_extensions(tmp_path: Path) -> None:
    async with node_in_aws() as place, registry(tmp_path, tls=True) as charts:
        await install_extensions(place, charts)
        garden = await comes_up(place)
        await extensions_serve(garden)
        await is_in_aws(place)


@asynccontextmanager
async def node_in_aws() -> AsyncGenerator[Place]:
    with moto() as server:
        async with (
            CorrectedAws(server) as aws,
            aws.client(REGION, retry=QUICK) as account,
            garden_node(f"aws-{secrets.token_hex(4)}") as sandbox,
            Client.connect(load(sandbox.kubeconfig)) as client,
        ):
            created = await account.call(
                "route53", "CreateHostedZone", Name=ZONE, CallerReference="once"
            )
            endpoint = f"http://{await sandbox.offer(port_of(aws.url))}"
            zone = created["HostedZone"]["Id"].rpartition("/")[2]
            yield Place(sandbox, client, account, endpoint, zone)


async def install_extensions(place: Place, charts: Registry) -> None:
    """Push our charts, and apply the Extensions of the examples with that registry."""
    clusters = ExtensionGarden(place.client, place.client)
    await clusters.secret(AUTHORITY, {"bundle.crt": charts.ca_bundle}, role="oci-ca-bundle")
    at = await place.sandbox.offer(port_of(charts.host))
    pushed = [await charts.push(CHARTS / name) for name in PUSHED]
    known = {each.repository: replace(each, registry=at) for each in pushed}
    for name in ADMISSIONS:
        extension = parse((EXAMPLES / "extensions" / f"{name}.yaml").read_text())
        assert isinstance(extension, dict)
        deployment = map_at(extension, "spec", "deployment", "extension")
        if name == "pergola-aws":
            variable = {"name": "AWS_ENDPOINT_URL", "value": place.endpoint}
            deployment["runtimeClusterValues"]["env"] = [variable]
        await place.client.create(pulled_from(extension, known))


def pulled_from(value: JsonValue, known: dict[str, ChartReference]) -> JsonObject:
    """Return an Extension whose charts come from another registry."""

    def changed(value: JsonValue) -> JsonValue:
        if not isinstance(value, dict):
            return value
        if "ociRepository" in value:
            named = ChartReference.of(map_at(value, "ociRepository"))
            ref = str(known[named.repository])
            return {"ociRepository": {"ref": ref, "caBundleSecretRef": {"name": AUTHORITY}}}
        return {name: changed(each) for name, each in value.items()}

    found = changed(value)
    assert isinstance(found, dict)
    return found


async def comes_up(place: Place) -> NodeGarden:
    """Wait until the Garden succeeds, and check how backups of its etcd get keys and reach S3."""
    way = {"endpoint": place.endpoint, "s3ForcePathStyle": "true"}
    await ExtensionGarden(place.client, place.client).secret("credentials", {**KEYS, **way})
    await place.client.create(with_values(example(), IN_BUCKET))
    await until(place.client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
    return await NodeGarden.of(place.sandbox, place.client)


async def extensions_serve(garden: NodeGarden) -> None:
    """Wait until all extensions are installed and registered for gardenlets, and review Shoots."""
    async with VirtualCluster(garden.client, reach=garden.reach) as access:
        virtual = await access.client()
        clusters = ExtensionGarden(garden.client, virtual)
        for name, admission in ADMISSIONS.items():
            await clusters.condition(name, "Installed", "True", "ReconcileSuccessful")
            await clusters.condition(name, "AdmissionHealthy", "True")
            await virtual.get(REGISTRATION, Key("", name))
            await virtual.get(DEPLOYMENT, Key("", name))
            webhooks = Key("", f"gardener-extension-admission-{admission}")
            found = await until(virtual, VALIDATING, webhooks, lambda _: True)
            for webhook in maps_at(found, "webhooks"):
                assert webhook["clientConfig"]["caBundle"]
                assert f"//{webhooks.name}.garden" in webhook["clientConfig"]["url"]
        await clusters.condition("pergola-aws", "RequiredRuntime", "True")
        await clusters.condition("pergola-aws", "RuntimeHealthy", "True")


async def is_in_aws(place: Place) -> None:
    """Wait until the names lead to the gateway and the etcd has stored a snapshot."""
    assert [await types_of(place, name) for name in NAMES] == [["A"]] * len(NAMES)
    assert await place.client.find(SECRET, Key("garden", "etcd-backup"))
    await until_stored(place, "/Full-")


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


async def types_of(place: Place, name: str) -> list[str]:
    found = await observe_record_sets(place.account, place.zone, name)
    return [records.type for records in found]


async def until_stored(place: Place, part: str) -> None:
    """Wait until the bucket of the Garden's etcd has a snapshot whose name contains a text."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await place.account.call("s3", "ListObjectsV2", Bucket=BUCKET)
            if any(part in each["Key"] for each in answer.get("Contents", [])):
                return
            await asyncio.sleep(1.0)
