"""Defaults of a Garden that its schema cannot fill in (spec 21 §8.1).

The webhook fills them in when a Garden is written. `garden_from` fills them in when a Garden is
read, so that the operator does not depend on the webhook.
"""

import copy
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue, map_at, name_of
from pergola.api.operator_v1alpha1.garden import Garden
from pergola.api.schema.nulls import without_nulls
from pergola.api.schema.read import read
from pergola.api.schema.structural import schema_of

_NETWORKING: Final = ("spec", "runtimeCluster", "networking")
_KUBERNETES: Final = ("spec", "virtualCluster", "kubernetes")
_GARDENER: Final = ("spec", "virtualCluster", "gardener")
_DOMAINS: Final = (
    ("spec", "runtimeCluster", "ingress"),
    ("spec", "virtualCluster", "dns"),
)
_PROVIDER_TYPE: Final = ("encryptionConfig", "provider", "type")
_ENCRYPTION: Final = "aescbc"
_OF_KUBE_API_SERVER: Final[tuple[tuple[tuple[str, ...], JsonValue], ...]] = (
    (("requests", "maxNonMutatingInflight"), 400),
    (("requests", "maxMutatingInflight"), 200),
    (("eventTTL",), "1h"),
    (("logging", "verbosity"), 2),
    (_PROVIDER_TYPE, _ENCRYPTION),
)


class Default(NamedTuple):
    """A value to set; missing maps above it are created."""

    path: tuple[str | int, ...]
    value: JsonValue


def garden_from(obj: JsonObject) -> Garden:
    """Return a Garden with all its defaults.

    Raises:
        Malformed: The message names the Garden and every invalid field.
    """
    return read(Garden, default_garden(obj), of=f"Garden {name_of(obj)}")


def default_garden(obj: JsonObject) -> JsonObject:
    """Return a copy of a Garden as a server stores it, with defaults for what is absent or null."""
    defaulted = without_nulls(schema_of(Garden), obj)
    for default in defaults_of(defaulted):
        _set(defaulted, default)
    return defaulted


def defaults_of(obj: JsonObject) -> list[Default]:
    """Return the defaults to fill in, in order; none below a value of the wrong type.

    A domain that is a plain name, as in earlier versions of the API, becomes an object.
    """
    return [*_domains(obj), *_ip_families(obj), *_kubernetes(obj), *_gardener(obj)]


def _domains(obj: JsonObject) -> Iterator[Default]:
    for path in _DOMAINS:
        domains = map_at(obj, *path).get("domains")
        for index, domain in enumerate(domains if isinstance(domains, list) else ()):
            if isinstance(domain, str):
                yield Default((*path, "domains", index), {"name": domain})


def _ip_families(obj: JsonObject) -> Iterator[Default]:
    networking = map_at(obj, *_NETWORKING)
    if networking and networking.get("ipFamilies") in (None, []):
        yield Default((*_NETWORKING, "ipFamilies"), ["IPv4"])


def _kubernetes(obj: JsonObject) -> Iterator[Default]:
    if not map_at(obj, *_KUBERNETES):
        return
    for path, value in _OF_KUBE_API_SERVER:
        yield from _missing(obj, (*_KUBERNETES, "kubeAPIServer", *path), value)
    yield from _missing(obj, (*_KUBERNETES, "kubeControllerManager"), {})


def _gardener(obj: JsonObject) -> Iterator[Default]:
    if not map_at(obj, *_GARDENER):
        return
    kube = map_at(obj, *_KUBERNETES, "kubeAPIServer", *_PROVIDER_TYPE[:-1]).get("type")
    path = (*_GARDENER, "gardenerAPIServer", *_PROVIDER_TYPE)
    yield from _missing(obj, path, _ENCRYPTION if kube is None else kube)


def _missing(obj: JsonObject, path: tuple[str, ...], value: JsonValue) -> Iterator[Default]:
    here: JsonValue = obj
    for step in path:
        if here is None:
            break
        if not isinstance(here, dict):
            return
        here = here.get(step)
    if here is None:
        yield Default(path, copy.copy(value))


def _set(obj: JsonObject, default: Default) -> None:
    *parents, last = default.path
    here: Any = obj
    for step in parents:
        if isinstance(step, str) and here.get(step) is None:
            here[step] = {}
        here = here[step]
    here[last] = default.value
