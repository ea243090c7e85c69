"""Untrusted text never becomes part of a shell command."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.providers.networking.cilium import Cilium
from tests.support.cilium_plans import cilium_config, cilium_plan, cilium_shoot

BOTH: Final = ("IPv4", "IPv6")
EVERYTHING: Final = {
    "hubble": {"enabled": True},
    "snatToUpstreamDNS": {"enabled": True},
    "snatOutOfCluster": {"enabled": True},
}
INJECTED: Final = "fd00::%x\nCOMMIT\nRULES\nreboot\n/64"
RESTORE_LINE: Final = re.compile(
    r"\*nat|COMMIT|:[a-z-]+ - \[0:0\]"
    r"|-A [a-z-]+ -d [0-9a-f:./]+ -j RETURN"
    r"|-A [a-z-]+ -s [0-9a-f:./]+( -p (udp|tcp) --dport 53)? -j MASQUERADE"
)


def containers(shoot: Shoot) -> list[JsonObject]:
    rendered = Cilium().render(cilium_plan(cilium_config(**EVERYTHING), shoot, families=BOTH))
    pods = [map_at(obj, "spec", "template", "spec") for obj in rendered.shoot]
    return [
        container
        for pod in pods
        for container in (*maps_at(pod, "initContainers"), *maps_at(pod, "containers"))
    ]


def commands(shoot: Shoot) -> list[object]:
    return [(c["name"], c.get("command"), c.get("args")) for c in containers(shoot)]


def rules(shoot: Shoot) -> Iterator[str]:
    for container in containers(shoot):
        if str(container["name"]).startswith("snat-"):
            for variable in container["env"]:
                yield from str(variable["value"]).splitlines()


def shoot_with(
    of: str, where: str, text: str, domain: str = "example.org", host: str = "h"
) -> Shoot:
    shoot = cilium_shoot(kube_proxy=False, external=f"https://{host}")
    networking = map_at(shoot.raw, where, "networking")
    networking[of] = text if where == "spec" else [text]
    map_at(shoot.raw, "spec", "dns")["domain"] = domain
    return shoot


@pytest.mark.parametrize("of", ["pods", "services", "nodes"])
@pytest.mark.parametrize("where", ["spec", "status"])
def test_a_range_with_a_zone_id_is_refused_with_its_field(of: str, where: str) -> None:
    with pytest.raises(ExtensionError, match=of):
        containers(shoot_with(of, where, INJECTED))


texts = st.one_of(
    st.text(),
    st.builds("fd00::%{}/64".format, st.text()),
    st.builds("{}/{}".format, st.ip_addresses(), st.integers(min_value=0, max_value=129)),
)


@given(
    of=st.sampled_from(["pods", "services", "nodes"]),
    where=st.sampled_from(["spec", "status"]),
    text=texts,
    domain=st.text(),
    host=st.text(alphabet="ab.-$`'\"%\n", min_size=1),
)
def test_no_text_of_a_shoot_changes_a_command(
    of: str, where: str, text: str, domain: str, host: str
) -> None:
    shoot = shoot_with(of, where, text, domain, host)
    try:
        found = commands(shoot)
    except ExtensionError:
        return

    assert found == commands(cilium_shoot(kube_proxy=False))
    assert all(RESTORE_LINE.fullmatch(line) for line in rules(shoot))
