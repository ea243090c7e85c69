"""The parsers of felix and typha accept the environments that we render."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Final

import pytest

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.calico import Calico, NetworkConfig
from pergola.providers.networking.plugin import Plan
from tests.support.config_checks import check_calico

pytestmark = pytest.mark.soak("originals")

FAMILIES: Final = (("IPv4",), ("IPv6",), ("IPv4", "IPv6"))
POOLS: Final = tuple(
    {"pool": pool, "mode": mode} for pool, mode in product(("ipip", "vxlan"), ("Always", "Never"))
)
REACHING: Final[tuple[tuple[JsonObject, ...], ...]] = (
    ({}, *({"backend": backend} for backend in ("bird", "none", "vxlan"))),
    ({}, {"overlay": {"enabled": True}}, {"overlay": {"enabled": False, "createPodRoutes": True}}),
    ({}, {"vxlan": {"enabled": True}}),
    ({}, *({"ipv4": pool} for pool in POOLS)),
    ({}, *({"ipv6": pool} for pool in POOLS)),
    ({}, {"ipam": {"type": "calico-ipam"}}),
)
RUNNING: Final[tuple[tuple[JsonObject, ...], ...]] = (
    ({}, {"ebpfDataplane": {"enabled": True}}),
    ({}, {"typha": {"enabled": False}}),
    ({}, {"wireguardEncryption": True}),
    ({}, {"snatToUpstreamDNS": {"enabled": True}}),
    ({}, {"vethMTU": "1400"}),
    ({}, {"serviceLoopPrevention": "Drop"}),
    ({}, {"birdExporter": {"enabled": True}}),
)


def combined(options: tuple[tuple[JsonObject, ...], ...]) -> Iterator[JsonObject]:
    for parts in product(*options):
        yield {key: value for part in parts for key, value in part.items()}


def shoot(families: tuple[str, ...], *, kube_proxy: bool, mode: str) -> Shoot:
    proxy = {"enabled": kube_proxy, "mode": mode}
    networking = {"nodes": "10.250.0.0/16" if "IPv4" in families else "2001:db8:2::/64"}
    addresses = [{"name": "external", "url": "https://api.example.org"}]
    return Shoot(
        {
            "spec": {
                "kubernetes": {"version": "1.33.2", "kubeProxy": proxy},
                "networking": networking,
            },
            "status": {
                "advertisedAddresses": addresses,
                "networking": {"pods": ["100.244.0.0/16", "2001:db8:1::/112"]},
            },
        }
    )


def plans() -> Iterator[Plan[NetworkConfig]]:
    proxies = ((True, "IPTables"), (True, "NFTables"), (False, "IPTables"))
    for families, (kube_proxy, mode) in product(FAMILIES, proxies):
        of = shoot(families, kube_proxy=kube_proxy, mode=mode)
        for config in chain(combined(REACHING), combined(RUNNING)):
            yield Plan(
                config=read_strict(NetworkConfig, config, Calico.config_gvk()),
                pod_range="100.244.0.0/16" if "IPv4" in families else "2001:db8:1::/112",
                service_range="100.32.0.0/13",
                families=families,
                shoot=of,
                namespace="shoot--project--name",
            )


def environments(objects: Sequence[JsonObject]) -> Iterator[Mapping[str, str]]:
    """Yield the settings of felix and typha; resolve keys of ConfigMaps, as the kubelet does."""
    maps = {name_of(obj): obj.get("data", {}) for obj in objects if obj["kind"] == "ConfigMap"}
    for obj in objects:
        for container in maps_at(map_at(obj, "spec", "template", "spec"), "containers"):
            found = dict(settings(container, maps))
            if found:
                yield found


def settings(
    container: JsonObject, maps: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    for variable in maps_at(container, "env"):
        name = str(variable["name"])
        if not name.startswith(("FELIX_", "TYPHA_")):
            continue
        key = map_at(variable, "valueFrom", "configMapKeyRef")
        yield name, maps[key["name"]][key["key"]] if key else str(variable["value"])


@pytest.fixture(scope="module")
def asked() -> list[Mapping[str, str]]:
    """Return the distinct environments that the options lead to."""
    plugin = Calico()
    found = {}
    for plan in plans():
        if [*plugin.check(plan.config, plan.families)] or [
            *plugin.check_shoot(plan.config, plan.shoot)
        ]:
            continue
        for environment in environments(plugin.render(plan).shoot):
            found[tuple(sorted(environment.items()))] = environment
    return list(found.values())


def test_felix_and_typha_accept_every_environment_without_a_warning(
    asked: list[Mapping[str, str]],
) -> None:
    assert len(asked) > 50

    judgements = check_calico([{"environment": dict(environment)} for environment in asked])

    for environment, judgement in zip(asked, judgements, strict=True):
        assert judgement == {"accepted": True}, environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FELIX_BPFENABLED", "maybe"),
        ("FELIX_NATPORTRANGE", "high"),
        ("TYPHA_SHUTDOWNTIMEOUTSECS", "x"),
    ],
)
def test_a_value_that_the_agents_replace_by_a_default_is_a_warning(name: str, value: str) -> None:
    [judgement] = check_calico([{"environment": {name: value}}])

    assert judgement.get("warnings") or not judgement["accepted"]


@pytest.mark.parametrize("name", ["FELIX_TELEPORT", "TYPHA_TELEPORT"])
def test_a_setting_that_the_agents_do_not_know_is_reported(name: str) -> None:
    [judgement] = check_calico([{"environment": {name: "on"}}])

    assert judgement["unknown"] == ["teleport"]
