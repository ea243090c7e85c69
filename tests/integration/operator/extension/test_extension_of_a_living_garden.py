"""Extensions through the whole life of a Garden, whose virtual cluster has a real Gardener API.

The operator runs as a whole process, with the permissions of its chart. One of the extensions is
ours for AWS, with moto as AWS, where the Garden has its DNS records and its backups.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound as NotInAws
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD
from pergola.extension_api.kinds import EXTENSION as USED
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.operator.extension.installations import REGISTRATION
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox import binaries
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.on_demand import HELM
from pergola.sandbox.registry import Registry
from pergola.sandbox.simulated import Site
from pergola.shipped import CHARTS
from pergola.testing.shared import require_images
from pergola.testing.waiting import running, until, until_gone
from tests.support.aws.extension import aws_extension
from tests.support.aws.gardens import IN_AWS, KEYS, NAMES, REGION, ZONE
from tests.support.chart_files import write_chart
from tests.support.extension_garden import ExtensionGarden
from tests.support.garden_extensions import garden_actuator, garden_unit
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import CONFIRMED, example, install_operator, operator
from tests.support.gardens import with_values
from tests.support.objects import secret
from tests.support.own_extensions import own_extension

pytestmark = [pytest.mark.soak("gardens"), pytest.mark.timeout(2400)]

LOCAL: Final = Key("", "local")
NAME: Final = Key("", "probe")
SPACE: Final = Key("", "runtime-extension-probe")
RESOURCE: Final = Key("garden", "extension-probe-garden")
PATIENCE: Final = 600.0
AWS: Final = "pergola-aws"


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


@pytest.fixture(scope="module")
def moto_server() -> Iterator[str]:
    with moto() as server:
        yield server


@pytest.fixture
async def aws(moto_server: str) -> AsyncIterator[CorrectedAws]:
    """Yield an AWS with a zone for the names of the Garden."""
    async with CorrectedAws(moto_server) as double:
        async with double.client(REGION, retry=QUICK) as account:
            await account.call("route53", "CreateHostedZone", Name=ZONE, CallerReference="once")
        yield double


def extension(chart: str) -> JsonObject:
    """Return an Extension that every Garden uses."""
    served = {
        "kind": "Extension",
        "type": "probe",
        "clusterCompatibility": ["garden", "shoot"],
        "autoEnable": ["garden"],
    }
    deployment = {"extension": {"helm": {"ociRepository": {"ref": chart}}}}
    spec = {"resources": [served], "deployment": deployment}
    return manifest(EXTENSION.api_version, EXTENSION.kind, NAME.name, spec=spec)


async def test_extensions_run_as_long_as_the_garden_needs_them(
    garden_world: Site, charts: Registry, aws: CorrectedAws, tmp_path: Path
) -> None:
    client = garden_world.client
    chart = await charts.push(write_chart(tmp_path))
    for_aws = own_extension(AWS, await charts.push(CHARTS / "extension-aws"), {"replicas": 0})
    kubeconfig = await install_operator(garden_world)
    helm = await asyncio.to_thread(lambda: binaries.find((HELM,))[HELM])
    cache = {"PERGOLA_HELM": str(helm), "PERGOLA_CHART_CACHE": str(tmp_path / "cache")}
    environment = {**garden_world.operator_environment, **cache}
    actuator = garden_actuator(USED, "probe")
    async with operator(kubeconfig, environment, reach=garden_world.reach):
        await client.create(extension(str(chart)))
        await client.create(for_aws)
        await client.create(secret("garden", "credentials", **KEYS))
        await client.create(with_values(example(), IN_AWS))
        await until(client, MANAGED_RESOURCE, RESOURCE, any_state, patience=PATIENCE)
        # The kind of its resources exists by now. No node runs the pods of our extension.
        async with (
            aws_extension(client, aws.url) as units,
            running(garden_unit(client, actuator), *units),
        ):
            await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
            await _is_installed(ExtensionGarden(client, client))
            await _is_registered(garden_world, client)
            bucket = await _is_in_aws(client, aws)
            assert "snapshot requested" in backup_log(garden_world).read_text()
            await _is_deleted(client)
            await _is_no_longer_in_aws(aws, bucket)


def any_state(_: JsonObject) -> bool:
    return True


async def _is_installed(garden: ExtensionGarden) -> None:
    required = await garden.condition("probe", "RequiredRuntime", "True")
    assert required["message"] == "Extension required for kinds [Extension]"
    await garden.condition("probe", "RuntimeHealthy", "True")
    await garden.condition("probe", "Installed", "True", "ReconcileSuccessful")
    await garden.condition("probe", "RequiredVirtual", "False", "NoRequiredControllerInstallation")
    await garden.runtime.get(CONFIG_MAP, Key(SPACE.name, "probe"))
    await until(garden.runtime, USED.gvk, Key("garden", "garden-probe"), has_succeeded)


async def _is_registered(site: Site, client: Client) -> None:
    async with VirtualCluster(client, reach=site.reach) as virtual:
        found = await until(await virtual.client(), REGISTRATION, NAME, any_state)
    [resource] = found["spec"]["resources"]
    assert resource["clusterCompatibility"] == ["shoot"]
    assert not resource.get("autoEnable")


def backup_log(site: Site) -> Path:
    """Return the log of the stand-in for the program that takes snapshots of the main etcd."""
    name = "backup-restore"
    return site.directory / "garden" / f"virtual-garden-etcd-main-{name}" / f"{name}.log"


async def _is_in_aws(client: Client, aws: CorrectedAws) -> str:
    """Check the names and the bucket of the Garden in AWS, and return the name of the bucket."""
    for kind, count in ((DNS_RECORD, len(NAMES)), (BACKUP_BUCKET, 1), (BACKUP_ENTRY, 1)):
        found = await client.list(kind.gvk)
        assert len(found) == count
        assert all(map(has_succeeded, found))
    assert await client.find(SECRET, Key("garden", "etcd-backup")) is not None
    [bucket] = await client.list(BACKUP_BUCKET.gvk)
    async with aws.client(REGION, retry=QUICK) as account:
        await account.call("s3", "GetBucketLocation", Bucket=name_of(bucket))
        assert await names_in(account) == {*NAMES}
    return name_of(bucket)


async def _is_no_longer_in_aws(aws: CorrectedAws, bucket: str) -> None:
    async with aws.client(REGION, retry=QUICK) as account:
        with pytest.raises(NotInAws):
            await account.call("s3", "GetBucketLocation", Bucket=bucket)
        assert await names_in(account) == set()


async def names_in(account: AwsClient) -> set[str]:
    """Return the names with an address in the zone of the Garden."""
    zones = await account.call("route53", "ListHostedZonesByName", DNSName=ZONE)
    [zone] = [each["Id"] for each in zones["HostedZones"] if each["Name"] == f"{ZONE}."]
    answer = await account.call("route53", "ListResourceRecordSets", HostedZoneId=zone)
    records = [each for each in answer["ResourceRecordSets"] if each["Type"] == "A"]
    return {each["Name"].rstrip(".").replace("\\052", "*") for each in records}


async def _is_deleted(client: Client) -> None:
    """Check that the Extension is uninstalled after its last resource, but not deleted."""
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)
    await until_gone(client, GARDEN, LOCAL, patience=PATIENCE)
    garden = ExtensionGarden(client, client)
    for each in ("probe", AWS):
        await garden.condition(each, "Installed", "False", "DeleteSuccessful")
    # No Seed ever required it: the condition keeps its reason.
    await garden.condition("probe", "RequiredVirtual", "False", "NoRequiredControllerInstallation")
    await garden.condition("probe", "RequiredRuntime", "False", "ExtensionNotRequired")
    assert await client.find(NAMESPACE, SPACE) is None
    await client.delete(EXTENSION, NAME)
    await until_gone(client, EXTENSION, NAME)
