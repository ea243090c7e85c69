"""Sidecars of the agent that rewrite the source addresses of pods with iptables.

Needed where packets of pods leave their node unencapsulated and the network outside has no route
back to a pod.
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final

from pergola.api.ip_ranges import Network
from pergola.api.objects import JsonObject, JsonValue
from pergola.manifests import Images, capable, env, exec_probe, mount, requests
from pergola.providers.networking.cilium.values import Values

_DNS: Final = ("-p udp --dport 53", "-p tcp --dport 53")
_ALL: Final = ("",)
_SCRIPT: Final = (files(__package__) / "scripts" / "snat.sh").read_text()


def sidecars(values: Values, image: Images) -> list[JsonObject]:
    """Return one container for each enabled option."""
    dns, everything = values.config.snat_to_upstream_dns, values.config.snat_out_of_cluster
    found = []
    if dns is not None and dns.enabled:
        # The infrastructure's resolvers have addresses in the range of the nodes.
        inside = (*values.pods, *values.services)
        found.append(_sidecar("snat-to-upstream-dns", values, image, inside, _DNS))
    if everything is not None and everything.enabled:
        inside = (*values.pods, *values.services, *values.nodes)
        found.append(_sidecar("snat-out-of-cluster", values, image, inside, _ALL))
    return found


def _sidecar(
    name: str, values: Values, image: Images, inside: Sequence[Network], matches: Sequence[str]
) -> JsonObject:
    chain = f"cilium-{name}"
    mark = f"/tmp/{chain}"  # noqa: S108 - in the container
    families = (("IPTABLES_RULES", values.ipv4, 4), ("IP6TABLES_RULES", values.ipv6, 6))
    rules: dict[str, JsonValue] = {
        variable: _rules(chain, _of(inside, version), _of(values.pods, version), matches)
        for variable, is_used, version in families
        if is_used
    }
    return {
        "name": name,
        "image": image("cilium-agent"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["bash", "-c", _SCRIPT, name, chain, mark],
        "env": env(**rules),
        "livenessProbe": exec_probe(
            "test", "-e", mark, initialDelaySeconds=30, periodSeconds=60, failureThreshold=3
        ),
        "resources": requests(cpu="5m", memory="16Mi"),
        "securityContext": capable("NET_ADMIN", "NET_RAW"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("xtables-lock", "/run/xtables.lock"),
            mount("lib-modules", "/lib/modules", readOnly=True),
        ],
    }


def _rules(
    chain: str, inside: Sequence[Network], pods: Sequence[Network], matches: Sequence[str]
) -> str:
    """Return the input of iptables-restore: parsed ranges and constants, never a user's text."""
    lines = ["*nat", f":{chain} - [0:0]", *_chain(chain, inside, pods, matches), "COMMIT"]
    return "\n".join(lines)


def _chain(
    chain: str, inside: Sequence[Network], pods: Sequence[Network], matches: Sequence[str]
) -> Iterator[str]:
    """Keep the source of packets inside the cluster; rewrite that of all others from pods."""
    for network in inside:
        yield f"-A {chain} -d {network} -j RETURN"
    for network in pods:
        for match in matches:
            yield " ".join(filter(None, (f"-A {chain} -s {network}", match, "-j MASQUERADE")))


def _of(networks: Sequence[Network], version: int) -> list[Network]:
    return [network for network in networks if network.version == version]
