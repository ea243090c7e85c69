"""Infrastructures in AWS from a request to the outcome: spec 30 §2, §11 and §14."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from pergola.api.kinds import EVENT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    finalizers_of,
    map_at,
)
from pergola.cloud.aws import AwsClient, Retry
from pergola.extensions.lifecycle import Settings
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.kube.kubeconfig import load
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, managed_config
from pergola.testing.extension_site import operation
from pergola.testing.waiting import PATIENCE, running
from pergola.testing.world import RecordingClient
from tests.support.aws.site import AwsSite, aws_site, codes_in, state_of

FINALIZER = "extensions.gardener.cloud/infrastructure"


@pytest.fixture
async def site(cluster_client: Client, namespace: str, aws: CorrectedAws) -> AsyncIterator[AwsSite]:
    site = await aws_site(cluster_client, namespace, aws)
    yield site
    await site.clean_up()


def number_of_new(before: dict[str, JsonObject], after: dict[str, JsonObject]) -> Counter[str]:
    """Return the number of new resources in an account by kind."""
    return Counter(key.partition("/")[0] for key in after if key not in before)


async def test_a_new_infrastructure_is_created_and_described_in_its_status(
    site: AwsSite, client: AwsClient
) -> None:
    before = await everything(client)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        done = await site.until_operation("Create")

    new = number_of_new(before, await everything(client))
    status, data = map_at(done, "status"), state_of(done)
    assert (new["Vpcs"], new["NatGateways"], new["Addresses"], new["Roles"]) == (1, 1, 1, 1)
    assert new["Subnets"] == 3
    assert status["lastOperation"]["progress"] == 100
    assert finalizers_of(done) == [FINALIZER]
    provider = status["providerStatus"]
    assert provider["kind"] == "InfrastructureStatus"
    assert provider["vpc"]["id"] == data["VPC"]
    assert [(each["purpose"], each["zone"]) for each in provider["vpc"]["subnets"]] == [
        ("nodes", f"{site.region}a"),
        ("public", f"{site.region}a"),
        ("internal", f"{site.region}a"),
    ]
    assert provider["iam"]["instanceProfiles"] == [
        {"purpose": "nodes", "name": f"{site.namespace}-nodes"}
    ]
    assert [cidr[-3:] for cidr in status["egressCIDRs"]] == ["/32"]
    assert status["networking"]["nodes"] == ["10.180.0.0/16"]


async def test_a_second_reconciliation_writes_nothing_to_aws(site: AwsSite) -> None:
    async with running(site.controller()):
        created = await site.ask(managed_config(site.region))
        created = await site.until_operation("Create")
        site.aws.taken()
        again = await site.again()

    assert site.aws.writes() == []
    for field in ("providerStatus", "state", "egressCIDRs", "networking"):
        assert again["status"][field] == created["status"][field]


async def test_an_unsuitable_network_is_a_configuration_problem(
    site: AwsSite, client: AwsClient
) -> None:
    network = await Network.create(client, zones="ab", dns=False)
    await everything(client)  # subnets are pending at first
    before = await everything(client)
    site.aws.taken()
    async with running(site.controller()):
        await site.ask(network.config())
        failed = await site.until_failed("enableDnsHostnames")

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]
    assert "aws ec2 modify-vpc-attribute" in failed["status"]["lastError"]["description"]
    assert finalizers_of(failed) == [FINALIZER]
    assert site.aws.writes() == []
    assert await everything(client) == before
    assert state_of(failed) == {}


async def test_an_unreadable_config_is_a_configuration_problem(site: AwsSite) -> None:
    async with running(site.controller()):
        await site.ask({**managed_config(site.region), "colour": "green"})
        failed = await site.until_failed("colour")

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]
    assert site.aws.taken() == []


@pytest.mark.parametrize(
    ("operation", "code", "status", "reported"),
    [
        ("CreateVpc", "AuthFailure", 401, "ERR_INFRA_UNAUTHENTICATED"),
        ("CreateVpc", "SignatureDoesNotMatch", 403, "ERR_INFRA_UNAUTHORIZED"),
        ("CreateVpc", "UnauthorizedOperation", 403, "ERR_INFRA_UNAUTHORIZED"),
        ("CreateVpc", "VpcLimitExceeded", 400, "ERR_INFRA_QUOTA_EXCEEDED"),
        ("CreateVpc", "RequestLimitExceeded", 503, "ERR_INFRA_RATE_LIMITS_EXCEEDED"),
        ("CreateVpc", "OptInRequired", 400, "ERR_INFRA_DEPENDENCIES"),
        ("CreateVpc", "InternalError", 500, "ERR_RETRYABLE_INFRA_DEPENDENCIES"),
        ("CreateVpc", "InsufficientInstanceCapacity", 400, "ERR_INFRA_RESOURCES_DEPLETED"),
        ("CreateVpc", "InvalidParameterValue", 400, "ERR_CONFIGURATION_PROBLEM"),
    ],
)
async def test_an_error_of_aws_is_reported_with_its_code(
    site: AwsSite, operation: str, code: str, status: int, reported: str
) -> None:
    site.aws.fail(operation, code, status=status, times=30)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        failed = await site.until_failed()

    assert codes_in(failed) == [reported]
    description = failed["status"]["lastError"]["description"]
    assert description.startswith('Error reconciling Infrastructure: failed to "ensure VPC": ')


async def test_a_throttled_check_is_not_a_configuration_problem(
    site: AwsSite, client: AwsClient
) -> None:
    network = await Network.create(client)
    site.aws.throttle("DescribeSubnets", times=30)
    async with running(site.controller()):
        await site.ask(network.config())
        failed = await site.until_failed()

    assert codes_in(failed) == ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]


async def test_an_account_that_throttles_every_call_is_reported_with_its_code_at_the_deadline(
    site: AwsSite,
) -> None:
    for described in ("DescribeVpcs", "DescribeKeyPairs", "DescribeDhcpOptions"):
        site.aws.throttle(described, times=10_000)
    async with running(site.unit(site.actuator(retry=Retry()), Settings(timeout=5))):
        await site.ask(managed_config(site.region))
        failed = await site.until_failed("AWS is throttling requests")

    assert codes_in(failed) == ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]


async def test_all_failures_are_reported_together(site: AwsSite) -> None:
    site.aws.fail("CreateVpc", "VpcLimitExceeded", times=30)
    site.aws.fail("CreateRole", "AccessDenied", status=403, times=30)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        failed = await site.until_failed()

    assert set(codes_in(failed)) == {"ERR_INFRA_QUOTA_EXCEEDED", "ERR_INFRA_UNAUTHORIZED"}


async def test_a_killed_controller_continues_where_it_was(site: AwsSite, client: AwsClient) -> None:
    reached = asyncio.Event()

    async def stop(_: Call) -> None:
        reached.set()

    before = await everything(client)
    site.aws.after("CreateNatGateway", stop)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        async with asyncio.timeout(PATIENCE):
            await reached.wait()
    killed = await site.read()
    async with running(site.controller()):
        done = await site.until_operation("Create")

    assert operation(killed) == ("Create", "Processing")
    assert {"VPC", "InternetGateway"} <= state_of(killed).keys()
    kept = state_of(killed)
    assert {key: state_of(done)[key] for key in kept} == kept
    new = number_of_new(before, await everything(client))
    singles = ("Vpcs", "NatGateways", "Addresses", "InternetGateways", "Roles", "KeyPairs")
    assert {kind: new[kind] for kind in singles} == dict.fromkeys(singles, 1)
    assert new["Subnets"] == 3


async def test_one_failure_to_write_the_state_has_no_consequences(
    site: AwsSite, kubeconfig: Path
) -> None:
    async with (
        Forgetful.connect(load(kubeconfig)) as forgetful,
        running(site.controller(forgetful)),
    ):
        await site.ask(managed_config(site.region))
        done = await site.until_operation("Create")

    assert forgetful.refused == 1
    assert "NodesSecurityGroup" in state_of(done)


async def test_a_resource_deleted_by_others_is_recreated(site: AwsSite, client: AwsClient) -> None:
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        before = state_of(await site.until_operation("Create"))
        nat, address = (
            before[f"Zones/{site.region}a/{key}"] for key in ("NATGateway", "NATGatewayElasticIP")
        )
        await client.call("ec2", "DeleteNatGateway", NatGatewayId=nat)
        after = state_of(await site.again())

    assert after[f"Zones/{site.region}a/NATGateway"] != nat
    assert after[f"Zones/{site.region}a/NATGatewayElasticIP"] == address


async def test_deletion_restores_the_account(site: AwsSite, client: AwsClient) -> None:
    before = await everything(client)
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        await site.until_operation("Create")
        await site.delete()
        await site.until_gone()

    assert await everything(client) == before


async def test_a_forced_deletion_does_not_call_aws(site: AwsSite) -> None:
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        await site.until_operation("Create")
        await site.put_cluster(
            {"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}
        )
        site.aws.taken()
        await site.delete()
        await site.until_gone()

    assert site.aws.taken() == []


async def test_a_migration_writes_nothing_to_aws(site: AwsSite) -> None:
    async with running(site.controller()):
        await site.ask(managed_config(site.region))
        await site.until_operation("Create")
        site.aws.taken()
        await site.again("migrate")
        migrated = await site.until(lambda obj: not finalizers_of(obj))
        assert site.aws.taken() == []
        await site.delete()
        await site.until_gone()

        await site.ask(managed_config(site.region), "wait-for-state")
        await site.edit_status({"state": migrated["status"]["state"]})
        await site.annotate("restore")
        restored = await site.until_operation("Restore")

    assert operation(migrated) == ("Migrate", "Succeeded")
    assert site.aws.writes() == []
    assert state_of(restored) == state_of(migrated)
    assert restored["status"]["providerStatus"] == migrated["status"]["providerStatus"]


async def test_warnings_become_events(site: AwsSite, client: AwsClient) -> None:
    network = await Network.create(client)  # without routes and subnets for load balancers
    async with running(site.controller()):
        await site.ask(network.config())
        await site.until_operation("Create")
        await site.again()
        async with asyncio.timeout(PATIENCE):  # Events are written after the status
            notes: list[str] = []
            while not any("to repair: aws ec2" in note for note in notes):
                await asyncio.sleep(0.1)
                notes = await warnings(site)

    assert len(notes) == len(set(notes))


async def warnings(site: AwsSite) -> list[str]:
    """Return the notes of the Events that warn about the Infrastructure."""
    events = await site.client.list(EVENT, site.namespace)
    return [event["note"] for event in events if event["reason"] == "InfrastructureWarning"]


class Forgetful(RecordingClient):
    """A client that rejects the second write of a state."""

    states = 0
    refused = 0

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Fail like an API server without a leader."""
        if isinstance(body, dict) and "state" in map_at(body, "status"):
            self.states += 1
            if self.states == 2:
                self.refused += 1
                raise ApiError(500, {"message": "etcdserver: leader changed"})
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)
