"""Validation of any input returns findings, and is consistent (spec 30 §1.4)."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.draft import Draft
from pergola.api.objects import JsonObject, JsonValue
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.shoot_checks import check_shoot
from pergola.providers.aws.shoot_defaults import mutate_shoot
from pergola.providers.aws.validation import ShootFacts, check_config, check_update, check_written

FAMILIES = st.sampled_from([("IPv4",), ("IPv6",), ("IPv4", "IPv6")])
CIDRS = st.sampled_from(
    ["10.0.0.0/16", "10.0.0.0/24", "10.0.1.0/24", "10.0.0.5/24", "2001:db8::/56", "", "x", "1/2"]
)
IDS = st.sampled_from(["vpc-1", "subnet-1", "subnet-2", "sg-1", "eipalloc-1", "", "x"])
TEXTS = st.one_of(st.text(max_size=20), CIDRS, IDS)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def maps(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    """Return a strategy for objects with any of the fields."""
    optional: dict[Any, st.SearchStrategy[Any]] = dict(fields)
    return st.fixed_dictionaries({}, optional=optional)


ZONES = maps(
    workers=CIDRS,
    internal=CIDRS,
    public=CIDRS,
    workersSubnetID=IDS,
    publicSubnetID=IDS,
    internalSubnetID=IDS,
    elasticIPAllocationID=IDS,
).flatmap(lambda zone: st.sampled_from(["a", "b", "c"]).map(lambda name: zone | {"name": name}))
VPCS = maps(
    id=IDS,
    cidr=CIDRS,
    gatewayEndpoints=st.lists(TEXTS, max_size=2),
    ipv6IpamPool=maps(id=IDS, cidrBlock=CIDRS),
)
NETWORKS = st.builds(
    lambda vpc, zones, more: {"vpc": vpc, "zones": zones, **more},
    VPCS,
    st.lists(ZONES, max_size=3),
    maps(nodesSecurityGroupID=IDS),
)
CONFIGS = st.builds(
    lambda networks, more: {"networks": networks, **more},
    NETWORKS,
    maps(
        dualStack=st.builds(lambda on: {"enabled": on}, st.booleans()),
        elasticFileSystem=maps(enabled=st.booleans(), id=IDS),
        ignoreTags=maps(keys=st.lists(TEXTS, max_size=2), keyPrefixes=st.lists(TEXTS, max_size=2)),
        enableDedicatedTenancyForVPC=st.booleans(),
    ),
)
FACTS = st.builds(
    lambda families, ranges, zones: ShootFacts(families=families, zones=zones, **ranges),
    FAMILIES,
    maps(nodes=TEXTS, pods=TEXTS, services=TEXTS),
    st.sampled_from([None, (), ("a", "b")]),
)


def decoded(value: JsonObject) -> InfrastructureConfig:
    return read_strict(InfrastructureConfig, value, INFRASTRUCTURE_CONFIG)


@given(new=JSON, old=JSON, facts=FACTS)
def test_no_config_breaks_the_validation(new: JsonValue, old: JsonValue, facts: ShootFacts) -> None:
    assert list(check_written(new, facts, old, path="spec.providerConfig"))


@given(new=CONFIGS, old=CONFIGS, facts=FACTS)
def test_every_finding_has_a_path_in_the_config(
    new: JsonObject, old: JsonObject, facts: ShootFacts
) -> None:
    config, before = decoded(new), decoded(old)

    for cause in [*check_config(config, facts, before), *check_update(config, before)]:
        assert cause.field.partition(".")[0] in {
            "networks",
            "elasticFileSystem",
            "ignoreTags",
            "dualStack",
            "enableDedicatedTenancyForVPC",
        }
        assert cause.message


@given(new=CONFIGS, facts=FACTS)
def test_a_config_is_not_a_change_of_itself(new: JsonObject, facts: ShootFacts) -> None:
    config = decoded(new)

    assert list(check_update(config, decoded(copy.deepcopy(new)))) == []
    again = set(check_config(config, facts, config))
    assert again <= set(check_config(config, facts))


@given(
    zones=st.lists(ZONES, min_size=1, max_size=3),
    families=FAMILIES,
    vpc=st.sampled_from([{"id": "vpc-1"}]),
)
def test_a_config_without_findings_is_of_one_kind(
    zones: list[JsonObject], families: tuple[str, ...], vpc: JsonObject
) -> None:
    config = decoded({"networks": {"vpc": vpc, "zones": zones}})

    if not list(check_config(config, ShootFacts(families=families))):
        kinds = {zone.workers_subnet_id is not None for zone in config.networks.zones}
        assert kinds == {config.byo_subnets}
        if config.byo_subnets:
            assert not any(zone.public or zone.internal for zone in config.networks.zones)


@given(
    provider=maps(infrastructureConfig=JSON, controlPlaneConfig=JSON),
    networking=maps(ipFamilies=JSON, nodes=JSON, pods=JSON, services=JSON, providerConfig=JSON),
    old=st.one_of(st.none(), st.builds(lambda spec: {"spec": spec}, JSON)),
    profile=st.one_of(st.none(), st.builds(lambda spec: {"spec": {"regions": spec}}, JSON)),
)
def test_no_shoot_breaks_defaulting_or_validation(
    provider: JsonObject, networking: JsonObject, old: JsonObject | None, profile: JsonObject | None
) -> None:
    spec = {
        "region": "eu-west-1",
        "provider": {"type": "aws", "workers": [{}], **provider},
        "networking": {"type": "calico", **networking},
    }
    draft = Draft({"spec": spec})

    mutate_shoot(draft, old)

    assert all(cause.field.startswith("spec.") for cause in check_shoot(draft.object, old, profile))
    second = Draft(draft.object)
    mutate_shoot(second, old)
    assert second.edits == ()
