"""Node-local DNS in the network of its pods, where cilium can redirect queries to it.

Gardener deploys it for the network of nodes; a webhook in the Shoot adapts it (spec 40 §6.5).
"""

from typing import Final

from pergola.admission.review import GroupVersionResource
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, deletion_timestamp_of, map_at, maps_at, name_of
from pergola.extensions.webhooks.mutation import from_objects
from pergola.extensions.webhooks.objects_mutator import ObjectMutation, shoot_objects_mutator

COMPONENT: Final = "networking-cilium"
NAME: Final = "node-local-dns"
SELECTOR: Final = {"matchLabels": {"k8s-app": NAME}}
_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_DAEMON_SETS: Final = GroupVersionResource("apps", "v1", "daemonsets")
_BECAUSE: Final = "cilium redirects DNS queries to a pod of the node"
_CORE_FILE: Final = "Corefile"
_CACHE: Final = "node-cache"
_ADAPTER: Final = "coredns-config-adapter"
_BIND: Final = "bind 0.0.0.0"
_CACHE_ARGS: Final = {
    "-skipteardown": "true",
    "-setupinterface": "false",
    "-setupiptables": "false",
}


def webhook() -> Webhook:
    """Return the webhook; it fails closed, because an unchanged DNS server gets no queries."""
    mutations = (
        ObjectMutation(
            resource=_CONFIG_MAPS,
            mutate=from_objects(adapt_config_map, _BECAUSE),
            prefixes=(f"{NAME}-",),
        ),
        ObjectMutation(
            resource=_DAEMON_SETS,
            mutate=from_objects(adapt_daemon_set, _BECAUSE),
            prefixes=(NAME,),
        ),
    )
    return shoot_objects_mutator(
        COMPONENT, NAME, mutations, object_selector=SELECTOR, failure_policy="Fail"
    )


def adapt_config_map(obj: JsonObject) -> JsonObject:
    """Make the Corefile of node-local DNS listen on every address; skip deleted objects."""
    core_file = map_at(obj, "data").get(_CORE_FILE)
    if (
        deletion_timestamp_of(obj) is not None
        or not name_of(obj).startswith(f"{NAME}-")
        or not isinstance(core_file, str)
    ):
        return obj
    return {**obj, "data": {**obj["data"], _CORE_FILE: adapt_core_file(core_file)}}


def adapt_core_file(text: str) -> str:
    """Return a Corefile in which `bind` and `health` listen on every address."""
    return "".join(_adapt_line(line) for line in text.splitlines(keepends=True))


def adapt_daemon_set(obj: JsonObject) -> JsonObject:
    """Move node-local DNS into the network of its pods; skip deleted objects."""
    if deletion_timestamp_of(obj) is not None or not name_of(obj).startswith(NAME):
        return obj
    pod = map_at(obj, "spec", "template", "spec")
    if not pod:
        return obj
    adapted: JsonObject = {**pod, "hostNetwork": False}
    for field, name, adapt in (
        ("containers", _CACHE, _adapt_cache),
        ("initContainers", _ADAPTER, _adapt_adapter),
    ):
        if field in pod:
            adapted[field] = [
                adapt(container) if container.get("name") == name else container
                for container in maps_at(pod, field)
            ]
    template = {**obj["spec"]["template"], "spec": adapted}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def _adapt_line(line: str) -> str:
    words = line.split()
    indent = line[: len(line) - len(line.lstrip())]
    end = line[len(line.rstrip()) :]
    match words:
        case ["bind", *_]:
            return f"{indent}{_BIND}{end}"
        case ["health", address, *rest] if ":" in address:
            port = address.rpartition(":")[2]
            return f"{indent}{' '.join(['health', f':{port}', *rest])}{end}"
    return line


def _adapt_cache(container: JsonObject) -> JsonObject:
    adapted = {**container, "args": _with_flags(container.get("args"))}
    get = map_at(container, "livenessProbe", "httpGet")
    if "host" in get:
        without = {field: value for field, value in get.items() if field != "host"}
        adapted["livenessProbe"] = {**container["livenessProbe"], "httpGet": without}
    return adapted


def _with_flags(args: object) -> list[str]:
    """Return the arguments with our flags in place of those of the same names."""
    kept: list[str] = []
    given = [str(arg) for arg in args] if isinstance(args, list) else []
    for arg in given:
        name = "-" + arg.partition("=")[0].lstrip("-")
        if not (arg.startswith("-") and name in _CACHE_ARGS):
            kept.append(arg)
    return [*kept, *(f"{name}={value}" for name, value in _CACHE_ARGS.items())]


def _adapt_adapter(container: JsonObject) -> JsonObject:
    args = container.get("args")
    if not isinstance(args, list):
        return container
    return {
        **container,
        "args": [f"-bind={_BIND}" if "bind=" in str(arg) else arg for arg in args],
    }
