"""The request to AWS from an Infrastructure and its Cluster (spec 30 §2, §5)."""

from base64 import b64encode

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources.security_group.desired import desired_rules
from pergola.providers.aws.resources.security_group.rules import ALL, EGRESS, Rule
from pergola.sandbox.aws.world import managed_config

REGION = "eu-west-1"


def infrastructure(**spec: object) -> JsonObject:
    return {
        "metadata": {"name": "s", "namespace": "shoot--p--s"},
        "spec": {"region": REGION, "providerConfig": managed_config(REGION), **spec},
    }


def shoot(**networking: object) -> Cluster:
    raw = {"metadata": {"uid": "u-1"}, "spec": {"networking": networking}}
    return Cluster("shoot--p--s", Shoot(raw))


def test_the_request_is_for_ipv4_without_a_cluster() -> None:
    asked = desired_of(infrastructure(), None)

    assert (asked.technical_id, asked.region) == ("shoot--p--s", REGION)
    assert (asked.families, asked.node_range, asked.shoot_uid) == (("IPv4",), "", "")
    assert asked.overlay
    assert asked.config.networks.zones[0].workers == "10.180.0.0/24"


def test_a_deletion_ignores_unknown_fields() -> None:
    """A field that became unknown must not keep a cluster from being deleted."""
    config = {**managed_config(REGION), "later": {}}

    with pytest.raises(Malformed, match=r"spec.providerConfig.later: is not a known field"):
        desired_of(infrastructure(providerConfig=config), None)
    asked = desired_of(infrastructure(providerConfig=config), None, strict=False)
    assert asked.config.networks.zones[0].workers == "10.180.0.0/24"
    with pytest.raises(Malformed, match=r"spec.providerConfig.networks"):
        desired_of(infrastructure(providerConfig={"networks": 1}), None, strict=False)


def test_the_first_entry_of_a_zone_counts() -> None:
    """Admission tolerates zones of old clusters that are listed twice."""
    config = managed_config(REGION, zones=("a", "b"))
    again = {**config["networks"]["zones"][0], "workers": "10.180.99.0/24"}
    config["networks"]["zones"].insert(1, again)

    asked = desired_of(infrastructure(providerConfig=config), None)

    zones = asked.config.networks.zones
    assert [(zone.name, zone.workers) for zone in zones] == [
        (f"{REGION}a", "10.180.0.0/24"),
        (f"{REGION}b", "10.180.4.0/24"),
    ]
    names = [step.name for step in reconcile_steps(asked)]
    assert len(names) == len(set(names))


def test_the_shoot_provides_families_ranges_and_the_overlay() -> None:
    cluster = shoot(
        ipFamilies=["IPv6", "IPv4"],
        nodes="10.0.0.0/16",
        pods="10.1.0.0/16",
        services="10.2.0.0/16",
        providerConfig={"overlay": {"enabled": False}},
    )
    asked = desired_of(infrastructure(sshPublicKey=b64encode(b"ssh-rsa x").decode()), cluster)

    assert asked.families == ("IPv6", "IPv4")
    assert (asked.node_range, asked.pod_ranges, asked.service_ranges) == (
        "10.0.0.0/16",
        ("10.1.0.0/16",),
        ("10.2.0.0/16",),
    )
    assert (asked.overlay, asked.shoot_uid, asked.ssh_public_key) == (False, "u-1", b"ssh-rsa x")


def test_ranges_reported_by_the_infrastructure_itself_are_ignored() -> None:
    cluster = shoot(pods="10.1.0.0/16")
    assert cluster.shoot is not None
    cluster.shoot.raw["status"] = {"networking": {"pods": ["2001:db8::/56", "10.1.0.0/16"]}}

    assert desired_of(infrastructure(), cluster).pod_ranges == ("10.1.0.0/16",)


def pool(*types: object, kind: str = "WorkerConfig", group: str = GROUP) -> JsonObject:
    interfaces = [{"type": each} for each in types]
    config = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "networkInterfaces": interfaces}
    return {"name": "w", "providerConfig": config}


@pytest.mark.parametrize(
    ("workers", "uses"),
    [
        ([], False),
        ([{"name": "w"}, {"name": "x", "providerConfig": None}], False),
        ([pool()], False),
        ([pool("interface")], False),
        ([pool(["efa"])], False),
        ([pool("efa", kind="SomethingElse")], False),
        ([pool("efa", group="elsewhere.example")], False),
        ([pool("efa")], True),
        ([{"name": "w"}, pool("interface", "efa-only")], True),
    ],
)
def test_one_pool_with_an_elastic_fabric_adapter_is_enough(
    workers: list[JsonObject], *, uses: bool
) -> None:
    cluster = Cluster("shoot--p--s", Shoot({"spec": {"provider": {"workers": workers}}}))

    asked = desired_of(infrastructure(), cluster)

    assert asked.uses_efa is uses
    to_itself = Rule(EGRESS, ALL, None, "sg-1")
    assert (to_itself in desired_rules(asked, "sg-1", [])) is uses


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"region": None}, "Infrastructure shoot--p--s/s: spec.region is missing"),
        ({"sshPublicKey": "ssh-rsa no base64"}, "spec.sshPublicKey is not valid base64"),
    ],
)
def test_missing_fields_of_the_spec_are_reported(change: JsonObject, said: str) -> None:
    with pytest.raises(ExtensionError, match=said) as caught:
        desired_of(infrastructure(**change), None)

    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_config_with_unknown_fields_is_refused() -> None:
    with pytest.raises(Malformed, match="somethingElse"):
        desired_of(
            infrastructure(providerConfig={**managed_config(REGION), "somethingElse": 1}), None
        )


def test_the_most_nodes_are_maximum_and_surge_of_all_pools() -> None:
    pools = [
        {"zones": ["a", "b", "c"], "maximum": 10, "maxSurge": 1},
        {"zones": ["b"], "maximum": 10, "maxSurge": "25%"},
        {"zones": ["c"], "maximum": 5, "maxSurge": "some"},
        {"zones": "a", "maximum": 5},
        {"zones": ["a"], "maximum": "5"},
        {},
    ]
    cluster = Cluster("shoot--p--s", Shoot({"spec": {"provider": {"workers": pools}}}))

    assert desired_of(infrastructure(), cluster).most_nodes == {"a": 5, "b": 16, "c": 8}
