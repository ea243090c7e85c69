"""The flows as graphs: spec 30 §3.3, §4.2."""

from dataclasses import replace

import msgspec
import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extensions.actuator import deadline_of
from pergola.flow import State, UnknownDependency
from pergola.flow.picture import Fate
from pergola.providers.aws.actuator import AwsInfrastructure
from pergola.providers.aws.config import InfrastructureConfig
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import DELETION, RECONCILIATION, foresee, name_zones
from pergola.providers.aws.resources import key_pair
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.security_group.ensure import NODES_GROUP
from pergola.providers.aws.resources.step import Step, Work, graph_of
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.state import is_empty

ZONES = ("eu-west-1a", "eu-west-1b")
MANAGED: JsonObject = {
    "vpc": {"cidr": "10.0.0.0/16"},
    "zones": [
        {"name": zone, "workers": f"10.0.{n}.0/24", "public": f"10.0.1{n}.0/24"}
        for n, zone in enumerate(ZONES)
    ],
}
BYO: JsonObject = {
    "vpc": {"id": "vpc-1"},
    "nodesSecurityGroupID": "sg-1",
    "zones": [{"name": zone, "workersSubnetID": f"subnet-{zone[-1]}"} for zone in ZONES],
}
PRIVATE: JsonObject = {
    "vpc": {"id": "vpc-1", "gatewayEndpoints": ["s3"]},
    "zones": [
        {"name": zone, "workers": f"10.0.{n}.0/24", "internal": f"10.0.1{n}.0/24"}
        for n, zone in enumerate(ZONES)
    ],
}
PATTERNS = {"managed": MANAGED, "byo": BYO, "private": PRIVATE}
FAMILIES = (("IPv4",), ("IPv4", "IPv6"), ("IPv6",))


def desired(networks: JsonObject, families: tuple[str, ...] = ("IPv4",)) -> Desired:
    config = msgspec.convert({"networks": networks}, InfrastructureConfig)
    return Desired(technical_id="shoot--p--s", region="eu-west-1", config=config, families=families)


def work_of(desired: Desired, state: State | None = None) -> Work:
    return Work(
        aws=AwsClient(desired.region),
        desired=desired,
        state=state or State(),
        snapshot=Snapshot(),
    )


def before(steps: list[Step], name: str) -> set[str]:
    """Return all steps that precede one."""
    after = {step.name: step.after for step in steps}
    found: set[str] = set()
    observe = list(after[name])
    while observe:
        each = observe.pop()
        if each not in found:
            found.add(each)
            observe += after[each]
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("families", FAMILIES, ids="-".join)
def test_every_mode_has_a_valid_graph(pattern: str, families: tuple[str, ...]) -> None:
    asked = desired(PATTERNS[pattern], families)
    state = State()
    name_zones(asked, state)

    for name, steps in (
        (RECONCILIATION, reconcile_steps(asked)),
        (DELETION, delete_steps(asked, state)),
    ):
        assert len(graph_of(name, steps, work_of(asked)).order()) == len(steps) > 0


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_step_may_take_its_time(pattern: str) -> None:
    asked = desired(PATTERNS[pattern])
    state = State()
    name_zones(asked, state)
    run = deadline_of(AwsInfrastructure())
    for step in (*reconcile_steps(asked), *delete_steps(asked, state)):
        assert step.timeout < run


def test_a_misspelt_dependency_of_a_step_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = desired(MANAGED)
    (step,) = key_pair.steps(asked)
    monkeypatch.setattr(key_pair, "steps", lambda _: [replace(step, after=("ensure VCP",))])

    with pytest.raises(UnknownDependency, match='did you mean "ensure VPC"'):
        graph_of(RECONCILIATION, reconcile_steps(asked), work_of(asked)).order()


def test_only_default_routes_depend_on_nat_gateways() -> None:
    steps = reconcile_steps(desired(MANAGED))

    waiting = {step.name for step in steps if names.NAT_GATEWAYS in before(steps, step.name)}
    assert waiting == {*(names.routes(zone) for zone in ZONES), names.EGRESS_RANGES}
    assert NODES_GROUP not in waiting


def test_the_identity_of_nodes_does_not_depend_on_the_network() -> None:
    steps = reconcile_steps(desired(MANAGED))

    assert all(
        names.VPC not in before(steps, step.name)
        for step in steps
        if "IAM" in step.name or "key pair" in step.name
    )


def test_only_identities_are_created_in_a_user_provided_network() -> None:
    asked = desired(BYO)
    steps = [step for step in reconcile_steps(asked) if not step.skip]

    creating = {
        name for name, note in foresee(steps, work_of(asked)).items() if note.fate is Fate.CREATE
    }
    assert all("IAM" in name or "key pair" in name for name in creating)


def test_skipped_steps_have_a_reason() -> None:
    notes = foresee(reconcile_steps(desired(PRIVATE)), work_of(desired(PRIVATE)))

    skipped = {name: note.why for name, note in notes.items() if note.fate is Fate.SKIP}
    assert skipped
    assert all(skipped.values())


def test_naming_zones_makes_a_state_non_empty() -> None:
    state = State()
    name_zones(desired(MANAGED), state)

    assert not is_empty(state)
    assert state.snapshot() == {"Zones/eu-west-1a/Suffix": "z0", "Zones/eu-west-1b/Suffix": "z1"}
