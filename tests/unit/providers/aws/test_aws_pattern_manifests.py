"""The manifests in `examples/aws` match their documentation: spec 30 §4.1, §4.2."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.kube.yaml import parse_documents
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources import byo_step_names as byo
from pergola.providers.aws.resources import iam, key_pair, security_group
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.step import Step
from pergola.providers.aws.validation import check_written, facts_of

EXAMPLES = Path(__file__).parents[4] / "examples" / "aws"
IDENTITY = {iam.ROLE, iam.INSTANCE_PROFILE, iam.ROLE_POLICY, key_pair.NAME}
BYO = {byo.READ, byo.TAG, byo.UNTAG, byo.FIND}
NAT = {names.address("eu-west-1a"), names.nat("eu-west-1a")}
GATEWAYS = {names.INTERNET_GATEWAY, names.MAIN_ROUTE_TABLE}


def manifests(pattern: str) -> dict[str, JsonObject]:
    (path,) = EXAMPLES.glob(f"pattern-{pattern}-*.yaml")
    objects = [each.value for each in parse_documents(path.read_text())]
    return {str(each["kind"]): each for each in objects if isinstance(each, dict)}


def steps_that_run(pattern: str) -> dict[str, Step]:
    found = manifests(pattern)
    desired = desired_of(found["Infrastructure"], Cluster.from_object(found["Cluster"]))
    return {step.name: step for step in reconcile_steps(desired) if not step.skip}


@pytest.mark.parametrize("pattern", ["1", "2", "3", "4", "5"])
def test_each_manifest_is_valid(pattern: str) -> None:
    found = manifests(pattern)
    shoot = Shoot(map_at(found["Cluster"], "spec", "shoot"))
    config = found["Infrastructure"]["spec"]["providerConfig"]

    assert list(check_written(config, facts_of(shoot, None), path="providerConfig")) == []
    assert found["Infrastructure"]["metadata"]["namespace"] == found["Cluster"]["metadata"]["name"]


@pytest.mark.parametrize(
    ("pattern", "there", "missing"),
    [
        ("1", NAT | GATEWAYS | {security_group.NODES_GROUP}, BYO),
        ("2", BYO, NAT | GATEWAYS | {security_group.NODES_GROUP, names.GATEWAY_ENDPOINTS}),
        ("3", BYO, NAT | GATEWAYS | {security_group.NODES_GROUP, names.GATEWAY_ENDPOINTS}),
        (
            "4",
            {
                security_group.NODES_GROUP,
                names.GATEWAY_ENDPOINTS,
                names.subnets("eu-west-1a"),
                names.route_table("eu-west-1a"),
            },
            NAT | GATEWAYS | BYO,
        ),
        (
            "5",
            NAT | {names.subnets("eu-west-1a"), names.MAIN_ROUTE_TABLE},
            BYO | {security_group.NODES_GROUP, names.DHCP_OPTIONS},
        ),
    ],
)
def test_each_pattern_has_the_steps_of_its_row(
    pattern: str, there: set[str], missing: set[str]
) -> None:
    running = steps_that_run(pattern).keys()

    assert running >= there | IDENTITY
    assert running.isdisjoint(missing)
