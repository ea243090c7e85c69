"""SelfHostedShootExposure and Etcd (spec 12 §15.7, §15.8)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import IMMUTABLE, Cause, invalid, required, unsupported
from pergola.api.ip_ranges import is_address
from pergola.api.objects import JsonObject, map_at, maps_at, name_of, namespace_of
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Profile,
    changed,
    missing,
)

_ADDRESS_TYPES: Final = ("Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS")
_PROVIDERS: Final = frozenset(
    {
        *("aws", "S3", "azure", "ABS", "gcp", "GCS", "alicloud", "OSS", "openstack", "Swift"),
        *("dell", "ECS", "openshift", "OCS", "local", "Local", "stackit"),
    }
)
_LAST_PORT: Final = 65535


def check_exposure(obj: JsonObject, _: Profile) -> Iterator[Cause]:
    """Yield findings about a SelfHostedShootExposure."""
    spec = map_at(obj, "spec")
    yield from missing(spec, ("type",))
    port = spec.get("port")
    if not isinstance(port, int) or not 1 <= port <= _LAST_PORT:
        yield invalid("spec.port", port, f"must be between 1 and {_LAST_PORT}, inclusive")
    endpoints = maps_at(spec, "endpoints")
    if not endpoints:
        yield required("spec.endpoints")
    for index, endpoint in enumerate(endpoints):
        at = f"spec.endpoints[{index}]"
        if not endpoint.get("nodeName"):
            yield required(f"{at}.nodeName")
        for number, address in enumerate(maps_at(endpoint, "addresses")):
            yield from _address(address, f"{at}.addresses[{number}]")
    if spec.get("credentialsRef") is not None:
        yield from _credentials(map_at(spec, "credentialsRef"), namespace_of(obj))


def check_etcd(obj: JsonObject, _: Profile) -> Iterator[Cause]:
    """Yield findings about an Etcd."""
    store = _store(obj)
    if store is None:
        return
    prefix, provider = store.get("prefix") or "", store.get("provider")
    names = (namespace_of(obj), name_of(obj))
    if not isinstance(prefix, str) or not all(name in prefix for name in names):
        yield invalid("spec.backup.store.prefix", prefix, "must contain object name and namespace")
    if provider and not (isinstance(provider, str) and provider in _PROVIDERS):
        yield invalid(
            "spec.backup.store.provider", provider, f"unsupported storage provider: {provider}"
        )


def check_etcd_update(new: JsonObject, old: JsonObject, profile: Profile) -> Iterator[Cause]:
    """Yield findings about a change of an Etcd."""
    now, before = _store(new), _store(old)
    if now is not None and before is not None and now.get("prefix") != before.get("prefix"):
        yield invalid("spec.backup.store.prefix", now.get("prefix"), IMMUTABLE)
    if profile == "relaxed":
        yield from changed(new, old, ("etcd.memberNamePrefix",))


def _store(obj: JsonObject) -> JsonObject | None:
    store = map_at(obj, "spec", "backup").get("store")
    return store if isinstance(store, dict) else None


def _address(address: JsonObject, path: str) -> Iterator[Cause]:
    kind, value = address.get("type"), address.get("address")
    if not kind:
        yield required(f"{path}.type")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported(f"{path}.type", kind, _ADDRESS_TYPES)
    if not isinstance(value, str) or not value:
        yield required(f"{path}.address")
    elif kind in ("InternalIP", "ExternalIP") and not is_address(value):
        yield invalid(f"{path}.address", value, "must be a valid IP address")
    elif kind in ("Hostname", "InternalDNS", "ExternalDNS") and not is_dns_subdomain(value):
        yield invalid(f"{path}.address", value, "must be a DNS subdomain")


def _credentials(reference: JsonObject, namespace: str) -> Iterator[Cause]:
    at = "spec.credentialsRef"
    for name in ("apiVersion", "kind", "namespace", "name"):
        if not reference.get(name):
            yield required(f"{at}.{name}")
    called = reference.get("name")
    if isinstance(called, str) and called and not is_dns_subdomain(called):
        yield invalid(f"{at}.name", called, "must be a DNS subdomain")
    if reference.get("apiVersion") not in (None, "", "v1"):
        yield unsupported(f"{at}.apiVersion", reference["apiVersion"], ("v1",))
    if reference.get("kind") not in (None, "", "Secret"):
        yield unsupported(f"{at}.kind", reference["kind"], ("Secret",))
    if reference.get("namespace") not in (None, "", namespace):
        yield invalid(
            f"{at}.namespace", reference["namespace"], f"must be the object's: {namespace}"
        )
