"""The components of Kubernetes in a control plane on AWS (spec 31 §8).

Clouds are served by a controller manager of their own, so the API server and the controller manager
of Kubernetes must know none. Older versions gave them credentials and files, which are removed.
"""

from collections.abc import Callable
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Shoot
from pergola.providers.aws.control_plane.volume_classes import needs_volume_class_gate
from pergola.providers.aws.control_plane.webhooks.edits import (
    POD,
    TEMPLATE,
    at,
    command,
    container,
    with_entry,
    with_flag,
    without_flags,
    without_items,
    without_keys,
)

API_SERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
AUTOSCALER: Final = "cluster-autoscaler"

_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_CHECKSUMS: Final = ("checksum/secret-cloudprovider", "checksum/configmap-cloud-provider-config")
_VOLUMES: Final = ("etc-ssl", "usr-share-cacerts")
_ACCESS: Final = tuple(
    f"networking.gardener.cloud/to-{to}"
    for to in ("public-networks", "private-networks", "blocked-cidrs")
)
_ALLOCATES: Final = "--allocate-node-cidrs"
_GATES: Final = "feature-gates"
_GATE: Final = "VolumeAttributesClass=true"
_BETA: Final = "storage.k8s.io/v1beta1=true"
_IPV6_VERSION: Final = 6


def adapt_api_server(obj: JsonObject, shoot: Shoot) -> JsonObject:
    """Return the Deployment of an API server without any cloud."""
    gate = needs_volume_class_gate(shoot)

    def edited(words: list[str]) -> list[str]:
        words = without_flags(words, "--cloud-provider=", "--cloud-config=")
        if gate:
            words = with_entry(with_entry(words, _GATES, _GATE), "runtime-config", _BETA)
        return words

    return _without_checksums(container(obj, API_SERVER, _without_keys(edited)))


def adapt_controller_manager(obj: JsonObject, shoot: Shoot) -> JsonObject:
    """Return the Deployment of a controller manager that leaves nodes to that of the cloud."""
    gate = needs_volume_class_gate(shoot)
    allocates = "false" if has_own_node_ranges(shoot) else "true"

    def edited(words: list[str]) -> list[str]:
        if words[-2:] == [f"{_ALLOCATES}={allocates}", f"--{_GATES}={_GATE}"]:
            words = words[:-1]  # ours, in the order in which they are appended
        words = with_flag(words, "cloud-provider", "external")
        words = without_flags(
            words, "--cloud-config=", "--external-cloud-volume-plugin=", _ALLOCATES
        )
        words.append(f"{_ALLOCATES}={allocates}")
        return with_entry(words, _GATES, _GATE) if gate else words

    def without_mounts(found: JsonObject) -> JsonObject:
        without = _without_keys(edited)(found)
        return without_items(without, "volumeMounts", "name", _VOLUMES)

    obj = container(obj, CONTROLLER_MANAGER, without_mounts)
    obj = at(obj, POD, lambda pod: without_items(pod, "volumes", "name", _VOLUMES))
    obj = at(obj, (*TEMPLATE, "metadata"), lambda found: without_keys(found, "labels", _ACCESS))
    return _without_checksums(obj)


def adapt_scheduler(obj: JsonObject, shoot: Shoot) -> JsonObject:
    """Return the Deployment of a scheduler that knows VolumeAttributesClasses if it should."""
    return _with_gate(obj, SCHEDULER, shoot)


def adapt_autoscaler(obj: JsonObject, shoot: Shoot) -> JsonObject:
    """Return the Deployment of an autoscaler that knows VolumeAttributesClasses if it should."""
    return _with_gate(obj, AUTOSCALER, shoot)


def has_own_node_ranges(shoot: Shoot) -> bool:
    """Return whether the IPAM controller gives nodes their ranges, because they have IPv6."""
    if not isinstance(map_at(shoot.raw, "spec").get("networking"), dict):
        return False
    return "IPv6" in shoot.ip_families or any(map(_is_ipv6, shoot.node_ranges))


def _with_gate(obj: JsonObject, name: str, shoot: Shoot) -> JsonObject:
    if not needs_volume_class_gate(shoot):
        return obj
    return container(
        obj, name, lambda found: command(found, lambda words: with_entry(words, _GATES, _GATE))
    )


def _without_keys(
    edited: Callable[[list[str]], list[str]],
) -> Callable[[JsonObject], JsonObject]:
    """Return the adaption of a container: its command, and no credentials for AWS."""
    return lambda found: without_items(command(found, edited), "env", "name", _KEYS)


def _without_checksums(obj: JsonObject) -> JsonObject:
    return at(
        obj, (*TEMPLATE, "metadata"), lambda found: without_keys(found, "annotations", _CHECKSUMS)
    )


def _is_ipv6(text: str) -> bool:
    try:
        return parse_network(text).version == _IPV6_VERSION
    except ValueError:
        return False
