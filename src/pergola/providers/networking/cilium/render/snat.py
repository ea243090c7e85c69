"""Sidecars of the agent that rewrite the source addresses of pods with iptables.

Where packets of pods travel unwrapped, the world outside may not know the way back to a pod.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium.render.parts import Images, capable, mount, requests
from pergola.providers.networking.cilium.values import Values, version_of

_DNS: Final = ("-p udp --dport 53", "-p tcp --dport 53")
_ALL: Final = ("",)

# A chain of its own is filled anew in one go, so nothing is rewritten twice and nothing is left
# behind; when the sidecar ends, so does its work.
_SCRIPT: Final = """\
set -o nounset
chain={chain}
ensure() {{
  "$1-restore" --noflush --wait=5 || return 1
  "$1" -w 5 -t nat -C POSTROUTING -j "$chain" 2>/dev/null \\
    || "$1" -w 5 -t nat -I POSTROUTING -j "$chain"
}}
remove() {{
  "$1" -w 5 -t nat -D POSTROUTING -j "$chain" 2>/dev/null
  "$1" -w 5 -t nat -F "$chain" 2>/dev/null
  "$1" -w 5 -t nat -X "$chain" 2>/dev/null
}}
trap 'for tool in {tools}; do remove "$tool"; done; exit 0' TERM INT
while true; do
  healthy=yes
{steps}
  if [ "$healthy" = yes ]; then touch {mark}; else rm -f {mark}; fi
  sleep 30 &
  wait $!
done
"""
_STEP: Final = """\
  ensure {tool} <<'RULES' || healthy=no
*nat
:{chain} - [0:0]
{rules}
COMMIT
RULES"""


def sidecars(values: Values, image: Images) -> list[JsonObject]:
    """One container for each option that is on."""
    dns, everything = values.config.snat_to_upstream_dns, values.config.snat_out_of_cluster
    found = []
    if dns is not None and dns.enabled:
        # The resolvers of the infrastructure have addresses of the nodes' range.
        inside = (*values.pods, *values.services)
        found.append(_sidecar("snat-to-upstream-dns", values, image, inside, _DNS))
    if everything is not None and everything.enabled:
        inside = (*values.pods, *values.services, *values.nodes)
        found.append(_sidecar("snat-out-of-cluster", values, image, inside, _ALL))
    return found


def _sidecar(
    name: str, values: Values, image: Images, inside: Sequence[str], matches: Sequence[str]
) -> JsonObject:
    chain = f"cilium-{name}"
    mark = f"/tmp/{chain}"  # noqa: S108 - in the container
    tools = {"iptables": (values.ipv4, 4), "ip6tables": (values.ipv6, 6)}
    rules = {
        tool: "\n".join(_rules(chain, _of(inside, version), _of(values.pods, version), matches))
        for tool, (is_used, version) in tools.items()
        if is_used
    }
    return {
        "name": name,
        "image": image("cilium-agent"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["bash", "-c", _script(chain, mark, rules)],
        "livenessProbe": {
            "exec": {"command": ["test", "-e", mark]},
            "initialDelaySeconds": 30,
            "periodSeconds": 60,
            "failureThreshold": 3,
        },
        "resources": requests("5m", "16Mi"),
        "securityContext": capable("NET_ADMIN", "NET_RAW"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("xtables-lock", "/run/xtables.lock"),
            mount("lib-modules", "/lib/modules", readOnly=True),
        ],
    }


def _script(chain: str, mark: str, rules: dict[str, str]) -> str:
    steps = [_STEP.format(tool=tool, chain=chain, rules=lines) for tool, lines in rules.items()]
    return _SCRIPT.format(chain=chain, mark=mark, tools=" ".join(rules), steps="\n".join(steps))


def _rules(
    chain: str, inside: Sequence[str], pods: Sequence[str], matches: Sequence[str]
) -> Iterator[str]:
    """What stays inside of the cluster returns; of the rest, what comes from pods is rewritten."""
    for cidr in inside:
        yield f"-A {chain} -d {cidr} -j RETURN"
    for cidr in pods:
        for match in matches:
            yield " ".join(filter(None, (f"-A {chain} -s {cidr}", match, "-j MASQUERADE")))


def _of(ranges: Sequence[str], version: int) -> list[str]:
    return [cidr for cidr in ranges if version_of(cidr) == version]
