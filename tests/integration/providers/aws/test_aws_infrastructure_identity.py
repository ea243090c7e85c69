"""The identities that act for an Infrastructure, in AWS and in the seed (spec 30 §2 item 6)."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.extensions_v1alpha1 import CLUSTER
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import EVENT, SECRET
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.cloud.aws import AwsClient
from pergola.extensions.process import Options, assemble
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.providers.aws.flows.run import DELETION
from pergola.runtime.metrics import Metrics
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, managed_config
from pergola.sandbox.helm import render
from pergola.testing.extension_site import operation, request
from pergola.testing.waiting import PATIENCE, running, until, until_gone
from pergola.testing.world import RecordingClient
from tests.support.aws.site import CLOUD_PROFILE, AwsSite, aws_site, codes_in
from tests.support.charts import with_image
from tests.support.service_accounts import service_account_config, until_allowed

CHART = Path(__file__).parents[4] / "charts" / "extension-aws"


@pytest.fixture
async def site(cluster_client: Client, namespace: str, aws: CorrectedAws) -> AsyncIterator[AwsSite]:
    site = await aws_site(cluster_client, namespace, aws)
    yield site
    await site.clean_up()


async def test_an_infrastructure_that_was_never_created_is_deleted_without_credentials(
    site: AwsSite,
) -> None:
    await site.client.delete(SECRET, Key(site.namespace, "cloudprovider"))
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        failed = await site.until_failed("does not exist; create it")
        await site.delete()
        await site.until_gone()

    assert codes_in(failed) == ["ERR_INFRA_UNAUTHENTICATED"]
    assert site.aws.taken() == []


class Identified(CorrectedAws):
    """An AWS that records the identities of requests."""

    who: Sequence[str] = ()

    async def _pass(self, request: web.Request) -> web.Response:
        found = re.search("Credential=([^/]+)/", request.headers.get("Authorization", ""))
        self.who = [*self.who, found[1] if found else "nobody"]
        return await super()._pass(request)


@pytest.fixture
async def identified(
    cluster_client: Client, namespace: str, moto_server: str
) -> AsyncIterator[AwsSite]:
    async with Identified(moto_server) as aws:
        site = await aws_site(cluster_client, namespace, aws)
        yield site
        await site.clean_up()


async def test_rotated_credentials_are_used_in_the_next_run(identified: AwsSite) -> None:
    site, aws = identified, identified.aws
    assert isinstance(aws, Identified)
    async with running(site.controller()):
        await site.put_secret(accessKeyID="AKIAFIRST", secretAccessKey="one")
        await site.ask(managed_config(site.region))
        await site.until_operation("Create")
        first, aws.who = set(aws.who), []
        await site.put_secret(accessKeyID="AKIASECOND", secretAccessKey="two")
        await site.again()

    assert (first, set(aws.who)) == ({"AKIAFIRST"}, {"AKIASECOND"})


async def test_a_workload_identity_assumes_its_role_only_once(identified: AwsSite) -> None:
    site, aws = identified, identified.aws
    assert isinstance(aws, Identified)
    role = "arn:aws:iam::123456789012:role/gardener"
    async with running(site.controller()):
        await site.client.delete(SECRET, Key(site.namespace, "cloudprovider"))
        await site.put_secret(roleARN=role, token="a.projected.token")
        await site.ask(managed_config(site.region))
        await site.until_operation("Create")
        await site.again()

    assert aws.who.count("nobody") == 1
    assert len(set(aws.who) - {"nobody"}) == 1


async def test_credentials_that_expire_during_a_run_are_replaced(site: AwsSite) -> None:
    async def expire(_: Call) -> None:
        site.aws.expire()

    site.aws.before("CreateNatGateway", expire)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        failed = await site.until_failed()
        site.aws.heal()
        await site.put_secret(accessKeyID="AKIANEW", secretAccessKey="new")
        await site.until_operation("Create")

    assert codes_in(failed) == ["ERR_INFRA_UNAUTHENTICATED"]


async def test_the_role_of_the_chart_is_sufficient_for_everything(
    site: AwsSite, client: AwsClient, kubeconfig: Path, namespace: str
) -> None:
    network = await Network.complete(client, zones="a")
    group = await network.security_group()
    config = await restricted(site.client, load(kubeconfig), namespace)
    async with RecordingClient.connect(config) as restricted_client:
        await until_allowed(restricted_client, INFRASTRUCTURE)
        actuators = [site.actuator(), site.bastion_actuator()]
        metrics = Metrics()
        units = assemble(restricted_client, actuators, Options(), metrics)
        async with running(*units):
            await site.ask(network.config(group=group))
            await site.until_operation("Create")
            reached = await reachable_bastion(site)
            about = f"security group {group} is user-provided and is not changed"
            await until_reported(site, "Bastion", about)
            await site.client.delete(BASTION, Key.of(reached))
            await until_gone(site.client, BASTION, Key.of(reached))
            checked = await site.until(lambda obj: bool(maps_at(obj, "status", "conditions")))
            await site.delete()
            await site.until_gone()

    names = [unit.name for unit in units]
    assert names == ["infrastructure", "infrastructure-healthcheck", "bastion"]
    assert reached["status"]["ingress"]["ip"]
    found = {c["type"]: c["status"] for c in maps_at(checked, "status", "conditions")}
    assert found["NodesSecurityGroupValid"] == "True"
    value = metrics.registry.get_sample_value
    asked = {"service": "ec2", "operation": "RunInstances", "result": "success"}
    assert value("pergola_aws_requests_total", asked) == 1
    assert value("flow_duration_seconds_count", {"flow": DELETION}) == 1


async def test_the_role_of_the_chart_reads_secrets_by_name_and_may_be_restricted_to_names(
    site: AwsSite, kubeconfig: Path, namespace: str
) -> None:
    """gardenlet puts uids into the names of some Secrets, so only a user can restrict the role."""
    unrestricted = await restricted(site.client, load(kubeconfig), namespace)
    async with Client.connect(unrestricted) as client:
        await until_allowed(client, INFRASTRUCTURE)
        with pytest.raises(NotFound):
            await client.get(SECRET, Key(namespace, "bucket-0b7c0a3e"))
        with pytest.raises(Forbidden):
            await client.list(SECRET, namespace)
    names = {"credentials": ["cloudprovider"], "backups": ["backup"]}
    config = await restricted(site.client, load(kubeconfig), namespace, names)
    async with Client.connect(config) as restricted_client, asyncio.timeout(PATIENCE):
        assert await restricted_client.get(SECRET, Key(namespace, "cloudprovider"))
        for name in ("other", "ca", "generic-token-kubeconfig"):
            await until_forbidden(restricted_client, Key(namespace, name))


async def until_forbidden(client: Client, secret: Key) -> None:
    """Read a Secret until that is forbidden: the authorizer learns of a changed role late."""
    with suppress(Forbidden):
        while True:
            with suppress(NotFound):
                await client.get(SECRET, secret)


async def until_reported(site: AwsSite, kind: str, text: str) -> None:
    """Wait for an Event about an object of a kind; it may be written after the object."""
    async with asyncio.timeout(PATIENCE):
        while not any(
            event["regarding"]["kind"] == kind and text in event["note"]
            for event in await site.client.list(EVENT, site.namespace)
        ):
            pass


async def reachable_bastion(site: AwsSite) -> JsonObject:
    """Create a Bastion for the Infrastructure of a site, and return it once it is reachable."""
    profile: JsonObject = {"spec": {"cloudProfile": CLOUD_PROFILE}}
    await site.client.patch(CLUSTER, Key("", site.namespace), profile)
    asked = await site.client.create(
        {
            "apiVersion": BASTION.api_version,
            "kind": BASTION.kind,
            "metadata": {
                "name": "cli-1",
                "namespace": site.namespace,
                "annotations": request("reconcile"),
            },
            "spec": {
                "type": site.type,
                "userData": base64.b64encode(b"#!/bin/sh").decode(),
                "ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
            },
        }
    )
    return await until(
        site.client,
        BASTION,
        Key.of(asked),
        lambda obj: operation(obj) == ("Create", "Succeeded"),
    )


async def restricted(
    admin: Client,
    config: ClusterConfig,
    namespace: str,
    secrets: Mapping[str, list[str]] | None = None,
) -> ClusterConfig:
    """Return a ServiceAccount with the chart's role.

    Args:
        secrets: the names of the Secrets that it may read; None for all.
    """
    values: JsonObject = {"secrets": dict(secrets)} if secrets else {}
    role = next(obj for obj in render(CHART, with_image(values)) if obj["kind"] == "ClusterRole")
    name = f"{role['metadata']['name']}:{namespace}"
    role["metadata"]["name"] = name
    binding: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [{"kind": "ServiceAccount", "name": "extension", "namespace": namespace}],
    }
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "extension", "namespace": namespace},
    }
    for obj in (role, binding, account):
        await admin.apply(obj, manager="test", force=True)
    return await service_account_config(config, namespace, "extension")
