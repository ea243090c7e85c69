"""The permissions for DNS records and backups, in AWS and in the cluster, are sufficient."""

from pathlib import Path

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.backup import AwsBackupBucket, AwsBackupEntry
from pergola.providers.aws.dns import AwsDnsRecord
from pergola.providers.aws.garden_iam_policy import Purpose, operations
from pergola.sandbox.helm import render
from pergola.testing.waiting import running
from tests.support.aws.garden_site import REGION, GardenSite, HoldingAws, garden_site
from tests.support.charts import with_image
from tests.support.service_accounts import service_account_config, until_allowed

UID = "0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f"
CHART = Path(__file__).parents[4] / "charts" / "extension-aws"
BUCKET: JsonObject = {"region": REGION, "bucketName": "garden-backups"}
RECORD: JsonObject = {"name": "api.example.org", "recordType": "A", "values": ["192.0.2.1"]}


async def restricted(site: GardenSite, config: ClusterConfig) -> ClusterConfig:
    """Return a ServiceAccount with the chart's role."""
    role = next(obj for obj in render(CHART, with_image()) if obj["kind"] == "ClusterRole")
    name = f"{role['metadata']['name']}:{site.namespace}"
    role["metadata"]["name"] = name
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "extension", "namespace": site.namespace}
    binding: JsonObject = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "extension", "namespace": site.namespace},
    }
    for obj in (role, binding, account):
        await site.client.apply(obj, manager="test", force=True)
    return await service_account_config(config, site.namespace, "extension")


@pytest.mark.parametrize(
    ("made", "spec", "purpose", "secret"),
    [
        # The names that gardenlet gives to the Secrets.
        (AwsDnsRecord, RECORD, Purpose.DNS, "seed-ingress"),
        (AwsDnsRecord, RECORD, Purpose.DNS, "dnsrecord-web-internal"),
        (AwsBackupBucket, {"region": REGION}, Purpose.BACKUP, f"bucket-{UID}"),
        (AwsBackupEntry, BUCKET, Purpose.BACKUP, f"entry-shoot--p--web--{UID}"),
    ],
)
async def test_the_shipped_permissions_suffice_from_creation_to_deletion(
    cluster_client: Client,
    kubeconfig: Path,
    namespace: str,
    holding: HoldingAws,
    made: type[AwsAccess],
    spec: JsonObject,
    purpose: Purpose,
    secret: str,
) -> None:
    site = await garden_site(cluster_client, namespace, holding, made, secret)
    async with site.client_of() as client:
        name = {"Name": "example.org", "CallerReference": "once"}
        await client.call("route53", "CreateHostedZone", **name)
        place = {"LocationConstraint": REGION}
        await client.call(
            "s3", "CreateBucket", Bucket=BUCKET["bucketName"], CreateBucketConfiguration=place
        )
    holding.taken()
    config = await restricted(site, load(kubeconfig))
    async with Client.connect(config) as limited:
        await until_allowed(limited, made.gvk())
        async with running(site.controller(client=limited)):
            await site.ask(spec)
            await site.until_operation("Create")
            await site.again()
            await site.delete()
            await site.until_gone()
    used = {call.partition(" ")[2] for call in holding.taken()}
    await site.clean_up()

    assert used - {"GetCallerIdentity"} <= operations(purpose)
    assert used
    assert await site.client.find(SECRET, Key(namespace, "etcd-backup")) is None
