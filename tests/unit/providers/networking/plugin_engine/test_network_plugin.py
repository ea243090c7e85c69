"""The shared part of network plugins: from a Network to a plan or a refusal."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Value
from pergola.extensions import Cluster, Code, Context, ExtensionError, Shoot
from pergola.kube.client import Client
from pergola.providers.networking.families import desired_families, effective_families
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered
from pergola.providers.networking.rollout import plan_of
from pergola.runtime.clock import SystemClock

NAMESPACE = "shoot--demo--web"
SPEC = {"type": "tulip", "podCIDR": "100.244.0.0/16", "serviceCIDR": "100.32.0.0/13"}


class NetworkConfig(Value):
    """A config."""

    color: str = "red"


class Tulip(NetworkPlugin[NetworkConfig]):
    """A plugin that supports only some colors, and records the requested IP families."""

    type = "tulip"
    name = "networking-tulip"
    config = NetworkConfig

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def check(self, config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
        self.asked.append(families)
        if config.color == "blue":
            yield invalid("color", config.color, "there are no blue tulips")

    def check_shoot(self, config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
        if not shoot.kube_proxy_enabled:
            yield forbidden("spec.kubernetes.kubeProxy.enabled", "tulips need it")

    def render(self, plan: Plan[NetworkConfig]) -> Rendered:
        return Rendered(shoot=[])


def context(shoot: JsonObject | None) -> Context:
    async def nothing(*_: object) -> None:
        return None

    cluster = Cluster(NAMESPACE, None if shoot is None else Shoot(shoot))
    no_client = cast("Client", None)  # a plan needs no requests
    return Context(
        client=no_client,
        cluster=cluster,
        namespace=NAMESPACE,
        clock=SystemClock(),
        progress=nothing,
        save=nothing,
    )


def network(status: JsonObject | None = None, operation: str = "", **spec: Any) -> JsonObject:
    metadata: JsonObject = {"name": "web", "namespace": NAMESPACE}
    if operation:
        metadata["annotations"] = {"gardener.cloud/operation": operation}
    return {"metadata": metadata, "spec": {**SPEC, **spec}, "status": status or {}}


def refusal(obj: JsonObject, shoot: JsonObject | None = None) -> ExtensionError:
    with pytest.raises(ExtensionError) as error:
        plan_of(Tulip(), context({} if shoot is None else shoot), obj)
    return error.value


def test_a_plan_has_the_spec_of_the_network() -> None:
    state = {"chosen": 1}
    obj = network({"state": state}, providerConfig={"color": "yellow"})

    plan = plan_of(Tulip(), context({"spec": {}}), obj)

    assert (plan.config.color, plan.pod_range, plan.service_range) == (
        "yellow",
        "100.244.0.0/16",
        "100.32.0.0/13",
    )
    assert (plan.families, plan.namespace, plan.state) == (("IPv4",), NAMESPACE, state)
    assert (plan.ipv4, plan.ipv6) == (True, False)


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"color": "red"},
        {
            "apiVersion": "tulip.networking.extensions.gardener.cloud/v1alpha1",
            "kind": "NetworkConfig",
        },
    ],
)
def test_a_config_and_its_api_version_are_optional(config: JsonObject | None) -> None:
    assert plan_of(Tulip(), context({}), network(providerConfig=config)).config == NetworkConfig()


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (
            network(podCIDR="100.244.0.0"),
            (
                'invalid network resource: spec.podCIDR: Invalid value: "100.244.0.0": '
                "invalid CIDR address: 100.244.0.0"
            ),
        ),
        (
            network(type="", serviceCIDR="100.244.0.0/24"),
            (
                "invalid network resource: [spec.type: Required value: field is required, "
                'spec.serviceCIDR: Invalid value: "100.244.0.0/24": must not overlap with '
                '"spec.podCIDR" ("100.244.0.0/16")]'
            ),
        ),
        (
            network(providerConfig={"color": "blue"}),
            (
                'invalid network config: spec.providerConfig.color: Invalid value: "blue": '
                "there are no blue tulips"
            ),
        ),
        (
            network(providerConfig={"kind": "RoseConfig"}),
            (
                "invalid network config: NetworkConfig: spec.providerConfig.kind: "
                'must be "NetworkConfig"'
            ),
        ),
    ],
)
def test_a_problem_is_reported_with_its_path(obj: JsonObject, text: str) -> None:
    error = refusal(obj)

    assert str(error) == text
    assert error.codes == (Code.CONFIGURATION_PROBLEM,)


def test_an_unknown_field_is_reported() -> None:
    error = refusal(network(providerConfig={"colour": "red"}))

    assert str(error).startswith(
        "invalid network config: NetworkConfig: spec.providerConfig.colour: "
    )
    assert error.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_conflict_with_the_shoot_has_its_path_in_the_shoot() -> None:
    error = refusal(network(), {"spec": {"kubernetes": {"kubeProxy": {"enabled": False}}}})

    assert str(error) == "spec.kubernetes.kubeProxy.enabled: Forbidden: tulips need it"
    assert error.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_network_without_a_shoot_is_refused() -> None:
    with pytest.raises(ExtensionError, match=f"Cluster {NAMESPACE} has none"):
        plan_of(Tulip(), context(None), network())


# §1.4 step 4


@pytest.mark.parametrize(
    ("constraint", "effective"),
    [
        (None, ("IPv4", "IPv6")),
        ("True", ("IPv4", "IPv6")),
        ("Progressing", ("IPv4",)),
        ("False", ("IPv4",)),
    ],
)
def test_the_second_family_waits_for_the_nodes(
    constraint: str | None, effective: tuple[str, ...]
) -> None:
    constraints = [{"type": "DualStackNodesMigrationReady", "status": constraint}]
    status = {"constraints": constraints if constraint else []}
    plugin = Tulip()

    plan = plan_of(plugin, context({"status": status}), network(ipFamilies=["IPv4", "IPv6"]))

    assert plan.families == effective
    # The config must be valid for both families: a later refusal would stop the migration halfway.
    assert plugin.asked == [("IPv4", "IPv6")]


@pytest.mark.parametrize(
    ("families", "desired"),
    [
        (None, ("IPv4",)),
        ([], ("IPv4",)),
        (["IPv6"], ("IPv6",)),
        (["IPv6", "IPv4"], ("IPv6", "IPv4")),
    ],
)
def test_absent_families_mean_ipv4(families: list[str] | None, desired: tuple[str, ...]) -> None:
    assert desired_families(network(ipFamilies=families)) == desired
    assert effective_families(desired, Shoot({})) == desired


# A plugin that chooses a setting only once needs to know whether the Network is new


@pytest.mark.parametrize(
    ("status", "operation", "is_new"),
    [
        ({}, "", True),
        ({}, "reconcile", True),
        ({"lastOperation": {"type": "Create", "state": "Error"}}, "", True),
        ({"lastOperation": {"type": "Create"}, "providerStatus": {"kind": "x"}}, "", False),
        ({"lastOperation": {"type": "Reconcile"}}, "", False),
        ({"lastOperation": {"type": "Restore"}}, "", False),
        ({"state": {"a": 1}}, "", False),
        ({}, "restore", False),
    ],
)
def test_a_network_is_new_until_its_first_rollout(
    status: JsonObject, operation: str, is_new: bool
) -> None:
    assert plan_of(Tulip(), context({}), network(status, operation)).is_new is is_new


def test_the_names_of_a_plugin_are_derived_from_its_type() -> None:
    assert Tulip.origin() == "extension-networking-tulip"
    assert Tulip.managed_resource() == "extension-networking-tulip-config"
    assert str(Tulip.config_gvk()) == (
        "tulip.networking.extensions.gardener.cloud/v1alpha1/NetworkConfig"
    )
    assert Tulip.gvk().kind == "Network"
