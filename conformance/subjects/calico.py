"""Networks of type calico: every object for the Shoot, and the verdict of admission."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import orjson
from hypothesis.strategies import SearchStrategy

from conformance.comparison import ABSENT, Difference, differences, refusals
from conformance.documents import client_of
from conformance.oracles import CALICO, Answer
from conformance.strategies.calico import TABLE, some_network, some_shoot
from pergola.api.objects import JsonObject, JsonValue, Key, map_at, maps_at
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Context, Status
from pergola.kube.quantities import parse_quantity
from pergola.providers.networking.calico import Calico, FeatureGates
from pergola.providers.networking.plugin import Rendered
from pergola.providers.networking.rollout import network_status, plan_of
from pergola.providers.networking.shoot_validator import check_shoot
from pergola.runtime.clock import SystemClock
from tests.support import originals
from tests.support.originals import documented, rendered_fields
from tests.support.readable import title

_PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "calico-differences.md"
_CODE: Final = ("pergola.providers.networking.calico",)
_MTU: Final = "1480"
_AGENT: Final = "DaemonSet calico-node"
_MAIN: Final = {_AGENT: "calico-node", "Deployment calico-typha-deploy": "calico-typha"}
"""The containers whose requests are compared, by workload."""
_POLICIES: Final = "resourcePolicy"
_POLICY: Final = "containerPolicies"
_CONTAINERS: Final = ("initContainers", "containers")
_IGNORED: Final[Mapping[str, Sequence[str]]] = {
    "calico-ipam": ("ranges", "subnet"),
    "host-local": ("assign_ipv4", "assign_ipv6"),
}
"""Settings of the CNI plugin that have no effect, by the assignment of addresses."""
_NEVER: Final = "Never"
_MODES: Final = tuple(
    f"pod.containers.calico-node.env.CALICO_{pool}"
    for pool in ("IPV4POOL_IPIP", "IPV4POOL_VXLAN", "IPV6POOL_VXLAN")
)
"""Variables of calico-node for which it takes `Never` if they are missing or `Off`."""


class CalicoObjects:
    """Every object that the extension for Calico makes of a Network.

    The fields that docs/reference/calico-differences.md explains may differ.
    """

    name = "calico-objects"
    ask = "calico-objects"
    title = "Calico: objects of a Network"
    of = CALICO
    code = _CODE

    def table(self) -> Iterator[JsonObject]:
        """Yield Networks with each option."""
        yield from TABLE

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Networks with random options."""
        return some_network()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the fields of all objects without texts and images."""
        output = answer.output
        return {**output, "shoot": {**rendered_fields(output["shoot"])}}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Render the same Network, and compare every field of every object."""
        try:
            rendered, families = _rendered(question)
        except ExtensionError as error:
            if answer.outcome == "output":
                yield Difference("network", "objects", str(error))
            return
        if answer.outcome != "output":
            yield Difference("network", str(answer.value).split("\n", 1)[0], "objects")
            return
        theirs = answer.output
        yield from differences(theirs["families"], families, "families")
        yield from _compared(theirs["shoot"], list(rendered.shoot))


class CalicoConfig:
    """The verdict about a Shoot with a config of Calico."""

    name = "calico-config"
    ask = "calico-config"
    title = "Calico: admission of Shoots"
    of = CALICO
    code = (
        "pergola.providers.networking.calico.checks",
        "pergola.providers.networking.shoot_validator",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield Shoots with each option."""
        yield from ({"shoot": each["shoot"]} for each in TABLE)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Shoots with odd configs."""
        return some_shoot()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the refused fields without their texts."""
        return {str(each["field"]): True for each in answer.output["refused"]}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts; a crash of the original's webhook refuses the request, too."""
        theirs = [
            (str(each["field"]).replace("<nil>", ""), f"{each['type']}: {each['detail']}")
            for each in answer.output.get("refused", ())
        ]
        if answer.outcome != "output":
            theirs = [(answer.outcome, str(answer.value).split("\n", 1)[0])]
        causes = check_shoot(_plugin(non_privileged=False), question["shoot"])
        ours = [(cause.field, f"{cause.reason}: {cause.message}") for cause in causes]
        yield from refusals(theirs, ours)


def _rendered(question: JsonObject) -> tuple[Rendered, list[JsonValue]]:
    """Return the objects of a Network, and its families.

    Raises:
        ExtensionError: it is refused, or cannot be rendered.
    """
    gates, network = question["gates"], question["network"]
    plugin = _plugin(non_privileged=bool(gates.get("NonPrivilegedCalicoNode")))
    plan = plan_of(plugin, _context(network, question["shoot"]), network)
    rendered = plugin.render(plan)
    return rendered, network_status(plugin, plan, rendered)["ipFamilies"]


@cache
def _plugin(*, non_privileged: bool) -> Calico:
    return Calico(gates=FeatureGates(non_privileged_calico_node=non_privileged))


def _context(network: JsonObject, shoot: JsonObject) -> Context:
    async def progress(percent: int, text: str) -> None: ...

    async def save(status: Status) -> None: ...

    namespace = Key.of(network).namespace
    return Context(
        client=client_of([]),
        cluster=Cluster(namespace, Shoot(shoot)),
        namespace=namespace,
        clock=SystemClock(),
        progress=progress,
        save=save,
    )


def _compared(theirs: list[JsonObject], ours: list[JsonObject]) -> Iterator[Difference]:
    one, other = _fields_of(theirs), _fields_of(ours)
    for name in sorted(one.keys() | other.keys()):
        for difference in _of_object(one.get(name), other.get(name)):
            if not _is_documented(name, difference):
                path = f"{name}: {difference.path}"
                yield Difference(path, difference.theirs, difference.ours)


def _of_object(theirs: JsonObject | None, ours: JsonObject | None) -> Iterator[Difference]:
    """Yield the differing fields of an object; one for an object that only one side has."""
    if theirs is None or ours is None:
        yield Difference("object", _presence(theirs), _presence(ours))
        return
    unshared = {name for each in _CONTAINERS for name in _unshared(each, theirs, ours)}
    for field in sorted(theirs.keys() | ours.keys()):
        if not any(field.startswith(f"{name}.") for name in unshared):
            yield from differences(_only(field, theirs), _only(field, ours))


def _only(field: str, of: JsonObject) -> JsonObject:
    return {field: of[field]} if field in of else {}


def _unshared(of: str, theirs: JsonObject, ours: JsonObject) -> Iterator[str]:
    """Yield the containers that only one side has."""
    one, other = (set(str(each.get(f"names of {of}", "")).split()) for each in (theirs, ours))
    yield from (f"pod.{of}.{name}" for name in one ^ other)


@cache
def _documented() -> Sequence[originals.Difference]:
    return documented(_PAGE)


def _is_documented(name: str, difference: Difference) -> bool:
    """Return whether the documentation explains a difference in an object."""
    found = originals.Difference(name, "*" if difference.path == "object" else difference.path)
    return any(row.covers(found) for row in _documented())


def _fields_of(objects: list[JsonObject]) -> dict[str, JsonObject]:
    """Return the fields of objects by their titles.

    Beyond the readable ones, these are the names and images of containers, and content in JSON. The
    requests of the main containers have names of their own, because those of others may differ.
    """
    found = {name: dict(fields) for name, fields in rendered_fields(objects).items()}
    for obj in objects:
        name = title(obj)
        fields = found[name]
        for of in _CONTAINERS:
            fields |= _names_and_images(of, obj)
        if obj["kind"] == "VerticalPodAutoscaler":
            fields |= _policies(obj, objects)
        if obj["kind"] == "ConfigMap":
            fields |= {f"data.{key}": _content(str(text)) for key, text in obj["data"].items()}
        if name == _AGENT:
            modes = {mode: fields.get(mode, _NEVER) for mode in _MODES}
            fields |= {mode: _NEVER if value == "Off" else value for mode, value in modes.items()}
        if main := _MAIN.get(name):
            _rename_requests(fields, main)
    return found


def _names_and_images(of: str, obj: JsonObject) -> JsonObject:
    containers = maps_at(_pod(obj), of)
    names = [str(each["name"]) for each in containers]
    if not names:
        return {}
    # Init containers run one after the other; the order of others is the same to a cluster.
    ordered = names if of == "initContainers" else sorted(names)
    images = {f"pod.{of}.{each['name']}.image": each["image"] for each in containers}
    return {f"names of {of}": " ".join(ordered), **images}


def _policies(scaler: JsonObject, objects: list[JsonObject]) -> JsonObject:
    """Return the policy of each container that an autoscaler finds in its workload."""
    spec = map_at(scaler, "spec")
    listed = {str(each["containerName"]): each for each in maps_at(spec, _POLICIES, _POLICY)}
    target = map_at(spec, "targetRef")
    pods = [_pod(each) for each in objects if title(each) == f"{target['kind']} {target['name']}"]
    names = [str(container["name"]) for pod in pods for container in maps_at(pod, "containers")]
    found: JsonObject = {f"spec.{_POLICIES}.{_POLICY}": None}
    for name in names:
        policy = {**(listed.get(name) or listed.get("*") or {})}
        policy.pop("containerName", None)
        least = {key: _amount(amount) for key, amount in map_at(policy, "minAllowed").items()}
        found[f"policy of {name}"] = {**policy, "minAllowed": least}
    return found


def _content(text: str) -> JsonValue:
    """Return content of a ConfigMap as its reader sees it.

    For the CNI plugin, that is after its installation on a node. Its level of logs is left out.
    """
    try:
        found: JsonValue = orjson.loads(text.replace("__CNI_MTU__", _MTU))
    except orjson.JSONDecodeError:
        return text
    if isinstance(found, dict):
        for plugin in maps_at(found, "plugins"):
            plugin.pop("log_level", None)
            ipam = map_at(plugin, "ipam")
            for name in _IGNORED.get(str(ipam.get("type")), ()):
                ipam.pop(name, None)
            if isinstance(subnet := ipam.get("subnet"), str):
                ipam["subnet"] = subnet.casefold()  # the plugin compares words like this
        return {name: value for name, value in found.items() if value != []}
    return found


def _rename_requests(fields: JsonObject, container: str) -> None:
    prefix = f"pod.containers.{container}.resources.requests."
    for name in [each for each in fields if each.startswith(prefix)]:
        fields[f"requests of {container}: {name.removeprefix(prefix)}"] = _amount(fields.pop(name))


def _amount(quantity: JsonValue) -> str:
    """Return the amount that a quantity stands for; different texts may mean the same."""
    if not isinstance(quantity, str | int | float):
        raise AssertionError("a quantity is a text or a number")
    return str(parse_quantity(quantity).normalize())


def _pod(obj: JsonObject) -> JsonObject:
    return map_at(obj, "spec", "template", "spec")


def _presence(obj: JsonObject | None) -> str:
    return ABSENT if obj is None else "present"
