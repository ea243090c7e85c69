"""DNSRecords of a garden in Route 53, on the API server and with moto as AWS."""

from collections.abc import AsyncIterator

import pytest

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, map_at
from pergola.cloud.aws import AwsClient
from pergola.extension_api.kinds import finalizer_of
from pergola.kube.client import Client
from pergola.providers.aws.dns import AwsDnsRecord
from pergola.providers.aws.resources.record_sets import (
    RecordSet,
    observe_record_sets,
    record_set,
)
from pergola.testing.waiting import running
from tests.support.aws.garden_site import GardenSite, HoldingAws, garden_site
from tests.support.aws.site import codes_in

NAME = "api.garden.example.org"
BALANCER = "a1b2.elb.eu-west-1.amazonaws.com"
CHANGE = "route53 ChangeResourceRecordSets"
A: JsonObject = {"name": NAME, "recordType": "A", "values": ["192.0.2.1"]}


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, holding: HoldingAws
) -> AsyncIterator[GardenSite]:
    site = await garden_site(cluster_client, namespace, holding, AwsDnsRecord)
    yield site
    await site.clean_up()


@pytest.fixture
async def route53(site: GardenSite) -> AsyncIterator[AwsClient]:
    async with site.client_of() as client:
        yield client


async def zone(client: AwsClient, name: str, *, private: bool = False) -> str:
    """Create a hosted zone, and return its id."""
    vpc = {"VPC": {"VPCRegion": "eu-west-1", "VPCId": "vpc-0123abcd"}} if private else {}
    answer = await client.call(
        "route53",
        "CreateHostedZone",
        Name=name,
        CallerReference=f"{name}-{private}",
        HostedZoneConfig={"PrivateZone": private},
        **vpc,
    )
    found: str = answer["HostedZone"]["Id"]
    return found.rpartition("/")[2]


async def upsert(client: AwsClient, zone: str, name: str, of_type: str, *values: str) -> None:
    """Create or change a record by hand, as its owner would."""
    await change(client, zone, "UPSERT", (name, of_type, 300), *values)


async def change(
    client: AwsClient, zone: str, action: str, record: tuple[str, str, int], *values: str
) -> None:
    name, of_type, ttl = record
    records = {
        "Name": name,
        "Type": of_type,
        "TTL": ttl,
        "ResourceRecords": [{"Value": value} for value in values],
    }
    batch = {"Changes": [{"Action": action, "ResourceRecordSet": records}]}
    await client.call("route53", "ChangeResourceRecordSets", HostedZoneId=zone, ChangeBatch=batch)


async def records(client: AwsClient, zone: str, name: str = NAME) -> list[RecordSet]:
    return await observe_record_sets(client, zone, name)


async def done(site: GardenSite, spec: JsonObject) -> JsonObject:
    """Create the DNSRecord, and return it once it is reconciled."""
    await site.ask(spec)
    return await site.until_operation("Create")


async def test_the_zone_with_the_longest_matching_name_gets_the_record(
    site: GardenSite, route53: AwsClient
) -> None:
    await zone(route53, "example.org")
    inner = await zone(route53, "garden.example.org")
    await zone(route53, "den.example.org")

    async with running(site.controller()):
        created = await done(site, A)

    assert await records(route53, inner) == [record_set(NAME, "A", 120, ["192.0.2.1"])]
    assert map_at(created, "status")["zone"] == inner


async def test_a_public_zone_is_preferred_to_a_private_one_with_a_longer_name(
    site: GardenSite, route53: AwsClient
) -> None:
    public = await zone(route53, "example.org")
    await zone(route53, "garden.example.org", private=True)

    async with running(site.controller()):
        created = await done(site, A)

    assert map_at(created, "status")["zone"] == public


async def test_a_private_zone_is_used_if_no_public_one_matches(
    site: GardenSite, route53: AwsClient
) -> None:
    private = await zone(route53, "garden.example.org", private=True)

    async with running(site.controller()):
        created = await done(site, A)

    assert map_at(created, "status")["zone"] == private


async def test_a_name_without_a_zone_is_a_configuration_problem(site: GardenSite) -> None:
    async with running(site.controller()):
        await site.ask(A)
        failed = await site.until_failed("could not find DNS hosted zone for name")

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]


@pytest.mark.parametrize(
    ("of_type", "values", "expected"),
    [
        ("A", ["192.0.2.2", "192.0.2.1"], ["192.0.2.1", "192.0.2.2"]),
        ("AAAA", ["2001:DB8:0:0::1"], ["2001:db8::1"]),
        ("CNAME", ["Lb.Example.COM."], ["lb.example.com"]),
        ("TXT", ['a "word"'], [r'"a \"word\""']),
    ],
)
async def test_a_record_of_each_type_is_created_once_and_not_written_again_unchanged(
    site: GardenSite, route53: AwsClient, of_type: str, values: list[str], expected: list[str]
) -> None:
    id_of_zone = await zone(route53, "example.org")
    spec = {"name": f"*.{NAME}", "recordType": of_type, "values": values, "ttl": 60}

    async with running(site.controller()):
        await done(site, spec)
        created = site.aws.writes()
        await site.again()
        calls = site.aws.taken()

    [found] = await records(route53, id_of_zone, f"*.{NAME}")
    assert (found.type, found.ttl, list(found.values)) == (of_type, 60, expected)
    assert created.count(CHANGE) == 1
    assert calls == ["route53 ListResourceRecordSets"]


@pytest.mark.parametrize(
    ("stack", "types"), [("", ["A"]), ("ipv6", ["AAAA"]), ("dual-stack", ["A", "AAAA"])]
)
async def test_a_load_balancer_gets_alias_records_for_its_ip_families(
    site: GardenSite, route53: AwsClient, stack: str, types: list[str]
) -> None:
    id_of_zone = await zone(route53, "example.org")

    async with running(site.controller()):
        await done(site, {**A, "recordType": "CNAME", "values": [BALANCER]})
        await site.edit({"metadata": {"annotations": {marks.IP_STACK: stack}}})
        await site.again()

    found = await records(route53, id_of_zone)
    assert [each.type for each in found] == types
    assert {each.alias and each.alias.name for each in found} == {BALANCER}


async def test_a_changed_value_and_ttl_are_written_in_one_request(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")

    async with running(site.controller()):
        await done(site, A)
        await site.edit({"spec": {"values": ["192.0.2.9"], "ttl": 30}})
        site.aws.taken()
        await site.again()
        written = site.aws.writes()

    assert written == [CHANGE]
    assert await records(route53, id_of_zone) == [record_set(NAME, "A", 30, ["192.0.2.9"])]


async def test_a_record_of_a_new_type_replaces_the_old_one_in_one_request(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")

    async with running(site.controller()):
        await done(site, A)
        await site.edit({"spec": {"recordType": "CNAME", "values": ["lb.example.com"]}})
        site.aws.taken()
        await site.again()
        written = site.aws.writes()

    assert written == [CHANGE]
    assert [each.type for each in await records(route53, id_of_zone)] == ["CNAME"]


async def test_a_new_zone_gets_the_record_before_the_old_zone_loses_it(
    site: GardenSite, route53: AwsClient
) -> None:
    old = await zone(route53, "example.org")
    new = await zone(route53, "garden.example.org")

    async with running(site.controller()):
        await done(site, {**A, "zone": old})
        await site.edit({"spec": {"zone": f"/hostedzone/{new}"}})
        await site.again()

    assert await records(route53, old) == []
    assert await records(route53, new) == [record_set(NAME, "A", 120, ["192.0.2.1"])]
    assert map_at(await site.read(), "status")["zone"] == new


async def test_a_deleted_zone_is_looked_up_again(site: GardenSite, route53: AwsClient) -> None:
    outer = await zone(route53, "example.org")
    inner = await zone(route53, "garden.example.org")

    async with running(site.controller()):
        await done(site, A)
        await change(route53, inner, "DELETE", (NAME, "A", 120), "192.0.2.1")
        await route53.call("route53", "DeleteHostedZone", Id=inner)
        await site.again()

    assert map_at(await site.read(), "status")["zone"] == outer


async def test_a_foreign_record_of_another_type_is_never_replaced(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")
    await upsert(route53, id_of_zone, NAME, "TXT", '"kept"')

    async with running(site.controller()):
        await site.ask({**A, "recordType": "CNAME", "values": ["lb.example.com"]})
        failed = await site.until_failed("the name has a TXT record that was not created for this")

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]
    assert [each.type for each in await records(route53, id_of_zone)] == ["TXT"]


async def test_only_records_that_were_created_are_deleted(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")
    await upsert(route53, id_of_zone, NAME, "TXT", '"kept"')

    async with running(site.controller()):
        await done(site, A)
        await site.delete()
        await site.until_gone()

    assert [each.type for each in await records(route53, id_of_zone)] == ["TXT"]


async def test_a_record_that_others_changed_is_kept_and_reported_in_an_event(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")

    async with running(site.controller()):
        await done(site, A)
        await upsert(route53, id_of_zone, NAME, "A", "198.51.100.7")
        await site.delete()
        await site.until_gone()
        await site.until_noted(site.namespace, "was changed after it was created")

    assert await records(route53, id_of_zone) == [record_set(NAME, "A", 300, ["198.51.100.7"])]


async def test_a_record_that_was_never_created_is_deleted_without_credentials(
    site: GardenSite,
) -> None:
    await site.client.delete(SECRET, site.secret_key)
    async with running(site.controller()):
        await site.ask(A)
        failed = await site.until_failed("does not exist; create it")
        await site.delete()
        await site.until_gone()

    assert codes_in(failed) == ["ERR_INFRA_UNAUTHENTICATED"]
    assert site.aws.taken() == []


async def test_a_record_of_another_implementation_is_taken_over_without_a_write(
    site: GardenSite, route53: AwsClient
) -> None:
    id_of_zone = await zone(route53, "example.org")
    await upsert(route53, id_of_zone, NAME, "A", "192.0.2.1")
    await site.ask({**A, "ttl": 300}, asked="")
    before = {"zone": id_of_zone, "lastOperation": _succeeded()}
    await site.edit_status(before)
    site.aws.taken()

    async with running(site.controller()):
        await site.again()
        written = site.aws.writes()
        await site.delete()
        await site.until_gone()

    assert written == []
    assert await records(route53, id_of_zone) == []


async def left_by_another(
    site: GardenSite, client: AwsClient, host: str, *records: JsonObject
) -> str:
    """Create records, and a DNSRecord of the host without a state; return the zone."""
    id_of_zone = await zone(client, "example.org")
    changes = [{"Action": "UPSERT", "ResourceRecordSet": each} for each in records]
    await client.call(
        "route53",
        "ChangeResourceRecordSets",
        HostedZoneId=id_of_zone,
        ChangeBatch={"Changes": changes},
    )
    await site.ask({**A, "recordType": "CNAME", "values": [host]}, asked="")
    await site.edit({"metadata": {"finalizers": [finalizer_of("DNSRecord")]}})
    await site.edit_status({"zone": id_of_zone, "lastOperation": _succeeded()})
    site.aws.taken()
    return id_of_zone


def alias(host: str, of_type: str = "A") -> JsonObject:
    target = {"HostedZoneId": "Z0OTHER", "DNSName": f"{host}.", "EvaluateTargetHealth": True}
    return {"Name": f"{NAME}.", "Type": of_type, "AliasTarget": target}


def cname(host: str) -> JsonObject:
    return {"Name": NAME, "Type": "CNAME", "TTL": 60, "ResourceRecords": [{"Value": host}]}


GOVCLOUD = "a1b2.elb.us-gov-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("host", "left", "expected"),
    [
        (BALANCER, [cname(BALANCER)], ["A"]),
        (BALANCER, [alias(BALANCER), alias(BALANCER, "AAAA")], ["A"]),
        (GOVCLOUD, [alias(GOVCLOUD), alias(GOVCLOUD, "AAAA")], ["CNAME"]),
        (GOVCLOUD, [cname(GOVCLOUD)], ["CNAME"]),
    ],
    ids=["CNAME to alias", "one alias of two", "aliases to CNAME", "CNAME"],
)
async def test_either_form_of_another_implementation_becomes_ours_in_one_request(
    site: GardenSite, route53: AwsClient, host: str, left: list[JsonObject], expected: list[str]
) -> None:
    id_of_zone = await left_by_another(site, route53, host, *left)

    async with running(site.controller()):
        await site.again()
        found = [each.type for each in await records(route53, id_of_zone)]
        written = site.aws.writes()
        await site.delete()
        await site.until_gone()

    assert found == expected
    assert written == [CHANGE]
    assert await records(route53, id_of_zone) == []


@pytest.mark.parametrize(
    "left", [[cname(BALANCER)], [alias(BALANCER), alias(BALANCER, "AAAA")]], ids=["CNAME", "alias"]
)
async def test_either_form_of_another_implementation_is_deleted(
    site: GardenSite, route53: AwsClient, left: list[JsonObject]
) -> None:
    id_of_zone = await left_by_another(site, route53, BALANCER, *left)
    await site.delete()

    async with running(site.controller()):
        await site.until_gone()

    assert await records(route53, id_of_zone) == []


async def test_a_deletion_names_a_record_that_leads_elsewhere(
    site: GardenSite, route53: AwsClient
) -> None:
    other = cname("other.example.com")
    id_of_zone = await left_by_another(site, route53, BALANCER, other)
    await site.delete()

    async with running(site.controller()):
        await site.until_gone()
        await site.until_noted(site.namespace, "CNAME record api.garden.example.org to other.exam")

    assert [each.type for each in await records(route53, id_of_zone)] == ["CNAME"]


async def test_throttling_is_reported_and_the_next_run_waits(
    site: GardenSite, route53: AwsClient
) -> None:
    await zone(route53, "example.org")
    site.aws.fail("ListHostedZones", "Throttling", times=50)

    async with running(site.controller()):
        await site.ask(A)
        failed = await site.until_failed("AWS is throttling")

    assert codes_in(failed) == ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDenied", "ERR_INFRA_UNAUTHORIZED"),
        ("InvalidClientTokenId", "ERR_INFRA_UNAUTHORIZED"),
        ("LimitExceeded", "ERR_INFRA_QUOTA_EXCEEDED"),
        ("InvalidChangeBatch", "ERR_CONFIGURATION_PROBLEM"),
    ],
)
async def test_errors_of_aws_have_their_codes(
    site: GardenSite, route53: AwsClient, code: str, expected: str
) -> None:
    await zone(route53, "example.org")
    site.aws.fail("ChangeResourceRecordSets", code, status=403)

    async with running(site.controller()):
        await site.ask(A)
        failed = await site.until_failed()
        await site.until_operation("Create")

    assert codes_in(failed) == [expected]


async def test_creation_change_and_deletion_survive_a_kill_after_any_call(
    site: GardenSite, route53: AwsClient
) -> None:
    old = await zone(route53, "example.org")
    new = await zone(route53, "garden.example.org")
    await site.ask({**A, "zone": old})
    kills = [await site.survive(lambda: site.until_operation("Create"))]

    await site.edit({"spec": {"zone": new, "recordType": "CNAME", "values": ["lb.example.com"]}})
    await site.request()
    kills.append(await site.survive(site.until_answered))
    moved = await records(route53, old), [each.type for each in await records(route53, new)]

    await site.delete()
    kills.append(await site.survive(site.until_gone))

    assert moved == ([], ["CNAME"])
    assert await records(route53, new) == []
    assert all(kills)


async def test_a_migrated_record_keeps_its_state_and_nothing_is_written(
    site: GardenSite, route53: AwsClient
) -> None:
    await zone(route53, "example.org")

    async with running(site.controller()):
        created = await done(site, A)
        site.aws.taken()
        await site.annotate("migrate")
        migrated = await site.until_operation("Migrate")
        left = site.aws.taken()
        await site.again("restore")
        written = site.aws.writes()

    assert left == written == []
    assert map_at(migrated, "status")["state"] == map_at(created, "status")["state"]


def _succeeded() -> JsonObject:
    return {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "Successfully reconciled DNSRecord",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
