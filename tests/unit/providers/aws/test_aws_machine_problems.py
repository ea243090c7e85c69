"""A Worker that cannot be rendered is one clear sentence with a path: spec 31 §4."""

from collections.abc import Iterator
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.strategies.aws_machines import BASE
from conformance.strategies.fields import ABSENT, ANYTHING, Change, changed
from conformance.subjects.aws_machines import plan_of
from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import MalformedCluster
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.workers import Machines, WorkerPlan
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.machines import machines, problems
from tests.support.aws.machines import machine_fact

POOL: Final = "worker.spec.pools.0"
CONFIG: Final = f"{POOL}.providerConfig"
PROFILE: Final = "cluster.spec.cloudProfile.spec"
STATUS: Final = "worker.spec.infrastructureProviderStatus"
LONGEST: Final = 1000


def plan(*changes: Change) -> WorkerPlan[WorkerConfig]:
    return plan_of(changed(BASE, changes))


@pytest.mark.parametrize(
    ("path", "value", "field", "text"),
    [
        (f"{POOL}.name", ABSENT, "name", "names the machines"),
        (f"{POOL}.volume", ABSENT, "volume", "need a root volume"),
        (f"{POOL}.volume", None, "volume", "need a root volume"),
        (f"{POOL}.volume.size", ABSENT, "volume.size", "must begin with a number"),
        (f"{POOL}.volume.size", "Gi", "volume.size", "must begin with a number"),
        (f"{POOL}.volume.size", 50, "volume.size", "must be a text"),
        (f"{POOL}.volume.size", "9" * 5000, "volume.size", "at most 2147483647 GiB"),
        (f"{POOL}.volume.type", {}, "volume.type", "must be a text"),
        (f"{POOL}.volume.encrypted", "no", "volume.encrypted", "must be true or false"),
        (f"{POOL}.dataVolumes", [{"size": "1"}] * 12, "dataVolumes", "11 data volumes"),
        (f"{POOL}.dataVolumes", [{"size": "1", "name": 1}], "dataVolumes[0].name", "be a text"),
        (f"{POOL}.dataVolumes", [{"name": "a"}], "dataVolumes[0].size", "begin with a number"),
        (f"{POOL}.kubernetesVersion", "", "kubernetesVersion", "version of Kubernetes"),
        (f"{POOL}.kubernetesVersion", "new", "kubernetesVersion", "version of Kubernetes"),
        (f"{POOL}.machineType", "m9.huge", "machineType", 'not found in cloud profile "aws"'),
        (f"{POOL}.machineImage.name", "other", "machineImage", "neither in cloud profile nor"),
        (f"{POOL}.zones", ["eu-west-1z"], "zones[0]", 'no subnet with purpose "nodes"'),
        (f"{POOL}.nodeTemplate.capacity.cpu", "x", "nodeTemplate.capacity.cpu", "be a quantity"),
        (f"{POOL}.nodeTemplate.capacity.cpu", [], "nodeTemplate.capacity.cpu", "be a quantity"),
        (f"{CONFIG}.iamInstanceProfile", {}, "providerConfig.iamInstanceProfile", "a name or an"),
        (
            f"{CONFIG}.networkInterfaces",
            [{"networkCardIndexRange": {"from": 0, "to": 2**62}}],
            "providerConfig.networkInterfaces[0]",
            "at most 1000 network interfaces",
        ),
        (
            f"{CONFIG}.networkInterfaces",
            [{"networkCardIndex": 2**31}],
            "providerConfig.networkInterfaces[0].networkCardIndex",
            "between 0 and 2147483647",
        ),
        (
            f"{CONFIG}.networkInterfaces",
            [{"deviceIndex": 2**40}],
            "providerConfig.networkInterfaces[0].deviceIndex",
            "between 0 and 2147483647",
        ),
        (
            f"{STATUS}.iam.instanceProfiles",
            [],
            "providerConfig.iamInstanceProfile",
            'no instance profile with purpose "nodes"',
        ),
    ],
)
def test_a_pool_that_cannot_be_rendered_has_a_finding(
    path: str, value: Any, field: str, text: str
) -> None:
    found = plan(Change(path, value))

    [problem] = problems(found)
    with pytest.raises(ExtensionError) as caught:
        machines(found)

    assert problem.field == f"spec.pools[0].{field}"
    assert text in problem.message
    assert str(caught.value) == str(problem)
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_interfaces_that_are_empty_ranges_have_no_address_of_ipv6() -> None:
    interfaces: list[Any] = [{"networkCardIndexRange": {"from": 1, "to": 0}}]
    changes = [Change(f"{CONFIG}.networkInterfaces", interfaces)]
    assert not list(problems(plan(*changes)))

    families = Change("cluster.spec.shoot.spec.networking.ipFamilies", ["IPv6"])
    [problem] = problems(plan(*changes, families))

    assert problem.field == "spec.pools[0].providerConfig.networkInterfaces"


def test_each_pool_has_a_finding_of_its_own() -> None:
    pool = BASE["worker"]["spec"]["pools"][0]
    pools = [{**pool, "name": "a", "volume": {}}, pool, {**pool, "name": "c", "machineType": "x"}]

    found = [each.field for each in problems(plan(Change("worker.spec.pools", pools)))]

    assert found == ["spec.pools[0].volume", "spec.pools[2].machineType"]


def test_an_infrastructure_without_a_security_group_is_a_finding() -> None:
    found = plan(Change(f"{STATUS}.vpc.securityGroups", [{"purpose": "nodes"}]))

    [problem] = problems(found)
    with pytest.raises(ExtensionError, match='no security group with purpose "nodes" found'):
        machines(found)

    assert problem.field == "spec.infrastructureProviderStatus.vpc.securityGroups"


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("worker.status.providerStatus", {"images": []}, "status.providerStatus.images"),
        ("worker.status.providerStatus", {"machineImages": []}, "apiVersion: must be"),
        (
            f"{PROFILE}.providerConfig.machineImages",
            "none",
            "CloudProfile aws: spec.providerConfig.machineImages",
        ),
    ],
)
def test_a_profile_or_a_status_that_cannot_be_read_is_an_error(
    path: str, value: Any, text: str
) -> None:
    found = plan(Change(path, value))

    for run in (lambda: list(problems(found)), lambda: machines(found)):
        with pytest.raises(ExtensionError) as caught:
            run()
        assert text in str(caught.value)
        assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def deep(levels: int) -> Any:
    found: Any = "end"
    for _ in range(levels):
        found = {"a": [found]}
    return found


EVERYTHING: Final[JsonObject] = machine_fact("everything, Kubernetes 1.33.5")["input"]


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all fields, those of maps and lists, too."""
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in entries:
        below = f"{path}.{name}" if path else str(name)
        if "." not in str(name):  # a path cannot name such a field
            yield below
            if isinstance(each, dict | list):
                yield from paths(each, below)


READ: Final = [
    path
    for path in paths({name: EVERYTHING[name] for name in ("worker", "cluster")})
    if path.startswith(("worker.spec.", "cluster.spec."))
]
ODD: Final = (
    ANYTHING
    | st.just(ABSENT)
    | st.sampled_from(["x" * 100_000, "9" * 10_000, "a\nb", "\u0000", "é" * 300, 10**18, -1, 1e300])
    | st.sampled_from([[], [[]], [{}], [None, 1], {"": {}}])
    | st.integers(1, 90).map(deep)
)


def attempted(question: JsonObject) -> Machines | None:
    """Return the machines, or None for a Worker that is refused as it should be."""
    try:
        found = plan_of(question)
    except (Malformed, MalformedCluster):  # of others, who read it first
        return None
    findings: list[str] = []
    try:
        findings = [str(each) for each in problems(found)]
        made = machines(found)
    except ExtensionError as error:
        for text in (*findings, str(error)):
            assert len(text) <= LONGEST or "CloudProfile" in text
            assert "\n" not in text
        return None
    assert not findings
    orjson.dumps(made.status)
    return made


@given(
    path=st.sampled_from(READ),
    value=ODD,
    more=st.lists(st.tuples(st.sampled_from(READ), ODD), max_size=2),
)
def test_odd_input_is_never_another_error(
    path: str, value: Any, more: list[tuple[str, Any]]
) -> None:
    changes = [Change(path, value), *(Change(*each) for each in more)]

    attempted(changed(EVERYTHING, changes))


def test_every_field_may_be_anything() -> None:
    values = [ABSENT, None, "", 0, -1, True, [], {}, [None], "x" * 10_000, deep(50), 2**62, 1.5]
    made = sum(
        attempted(changed(EVERYTHING, [Change(path, value)])) is not None
        for path in READ
        for value in values
    )

    assert made
