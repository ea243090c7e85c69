"""OperatingSystemConfig (spec 12 §15.5)."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.resource_manager.webhooks.extension_validation.findings import text_at
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Profile,
    changed,
    missing,
)

_PURPOSES: Final = ("provision", "reconcile")
_CONTENTS: Final = ("secretRef", "inline", "imageRef")
_LAST_PORT: Final = 65535
_LONGEST_PORT: Final = 5

Located = list[tuple[str, JsonObject]]
"""Values with their paths."""


def check_operating_system_config(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """Yield findings about an OperatingSystemConfig, including its status."""
    spec = map_at(obj, "spec")
    if profile == "strict":
        yield from missing(spec, ("type",))
    purpose = spec.get("purpose")
    if not purpose:
        yield required("spec.purpose")
    elif purpose not in _PURPOSES:
        yield unsupported("spec.purpose", purpose, _PURPOSES)
    files = _located(obj, "spec", "files") + _located(obj, "status", "extensionFiles")
    for path, file in files:
        yield from _file(file, path)
    yield from _duplicates(files)
    known = {text_at(file, "path") for _, file in files} - {""}
    for path, unit in _located(obj, "spec", "units") + _located(obj, "status", "extensionUnits"):
        yield from _unit(unit, path, known)
    if spec.get("criConfig") is not None:
        yield from _runtime(map_at(spec, "criConfig"), "spec.criConfig", purpose)


def check_operating_system_config_update(
    new: JsonObject, old: JsonObject, _: Profile
) -> Iterator[Cause]:
    """Yield findings about a change of an OperatingSystemConfig."""
    yield from changed(new, old, ("type", "purpose"))


def _located(obj: JsonObject, part: str, name: str) -> Located:
    items = maps_at(obj, part, name)
    return [(f"{part}.{name}[{index}]", item) for index, item in enumerate(items)]


def _file(file: JsonObject, path: str) -> Iterator[Cause]:
    if not file.get("path"):
        yield required(f"{path}.path")
    host = file.get("hostName")
    if host is not None and not (isinstance(host, str) and is_dns_subdomain(host)):
        yield invalid(f"{path}.hostName", host, "must be a DNS subdomain")
    content, at = map_at(file, "content"), f"{path}.content"
    given = [name for name in _CONTENTS if content.get(name) is not None]
    if not given:
        yield required(at, f"one of {', '.join(_CONTENTS)} must be given")
    elif len(given) > 1:
        yield invalid(at, ", ".join(given), f"only one of {', '.join(_CONTENTS)} may be given")
    needed = {
        "secretRef": ("name", "dataKey"),
        "inline": ("data",),
        "imageRef": ("image", "filePathInImage"),
    }
    for name in given:
        for field in needed[name]:
            if not text_at(content, f"{name}.{field}"):
                yield required(f"{at}.{name}.{field}")
    encoding = map_at(content, "inline").get("encoding") or ""
    if encoding not in ("", "b64"):
        yield unsupported(f"{at}.inline.encoding", encoding, ("", "b64"))


def _duplicates(files: Located) -> Iterator[Cause]:
    """Yield duplicate paths: files may share a path only if each is for a different host."""
    hosts: dict[str, set[str]] = {}
    for path, file in files:
        name, host = file.get("path"), file.get("hostName") or ""
        if not isinstance(name, str) or not name or not isinstance(host, str):
            continue
        known = hosts.setdefault(name, set())
        if known and (host in known or not host or "" in known):
            yield duplicate(f"{path}.path", name)
        known.add(host)


def _unit(unit: JsonObject, path: str, files: set[str]) -> Iterator[Cause]:
    if not unit.get("name"):
        yield required(f"{path}.name")
    for index, drop_in in enumerate(maps_at(unit, "dropIns")):
        for name in ("name", "content"):
            if not drop_in.get(name):
                yield required(f"{path}.dropIns[{index}].{name}")
    names = unit.get("filePaths")
    for index, name in enumerate(names if isinstance(names, list) else []):
        if not isinstance(name, str) or name not in files:
            yield invalid(
                f"{path}.filePaths[{index}]",
                name,
                "must be the path of a file in spec.files or status.extensionFiles",
            )


def _runtime(config: JsonObject, path: str, purpose: object) -> Iterator[Cause]:
    driver = config.get("cgroupDriver")
    if driver is not None and driver not in ("cgroupfs", "systemd"):
        yield unsupported(f"{path}.cgroupDriver", driver, ("cgroupfs", "systemd"))
    if config.get("containerd") is None:
        return
    containerd, at = map_at(config, "containerd"), f"{path}.containerd"
    if purpose == "provision":
        yield forbidden(at, "containerd config is not allowed for purpose provision")
        return
    if not containerd.get("sandboxImage"):
        yield required(f"{at}.sandboxImage")
    yield from _registries(maps_at(containerd, "registries"), f"{at}.registries")
    for index, plugin in enumerate(maps_at(containerd, "plugins")):
        yield from _plugin(plugin, f"{at}.plugins[{index}]")


def _registries(registries: list[JsonObject], path: str) -> Iterator[Cause]:
    seen: set[object] = set()
    for index, registry in enumerate(registries):
        at, upstream = f"{path}[{index}]", registry.get("upstream")
        if not isinstance(upstream, str) or not _is_upstream(upstream):
            yield invalid(f"{at}.upstream", upstream, "must be _default or <host>[:<port>]")
        elif upstream in seen:
            yield duplicate(f"{at}.upstream", upstream)
        else:
            seen.add(upstream)
        server = registry.get("server")
        if server is not None and not _is_url(server, ("http", "https")):
            yield invalid(f"{at}.server", server, "must be a URL with scheme http or https")
        for number, host in enumerate(maps_at(registry, "hosts")):
            yield from _host(host, f"{at}.hosts[{number}]")


def _host(host: JsonObject, path: str) -> Iterator[Cause]:
    if not _is_url(host.get("url"), ()):
        yield invalid(f"{path}.url", host.get("url"), "must be a URL with a host")
    capabilities = host.get("capabilities")
    allowed = ("pull", "resolve", "push")
    for index, name in enumerate(capabilities if isinstance(capabilities, list) else []):
        if name not in allowed:
            yield unsupported(f"{path}.capabilities[{index}]", name, allowed)


def _plugin(plugin: JsonObject, path: str) -> Iterator[Cause]:
    operation, values = plugin.get("op", "add"), plugin.get("values")
    if operation not in ("add", "remove"):
        yield unsupported(f"{path}.op", operation, ("add", "remove"))
    if not plugin.get("path"):
        yield required(f"{path}.path")
    if values is not None and operation == "remove":
        yield forbidden(f"{path}.values", "values are not allowed when something is removed")
    elif values is not None and not isinstance(values, dict):
        yield invalid(f"{path}.values", values, "must be an object")


def _is_upstream(text: str) -> bool:
    if text == "_default":
        return True
    host, colon, port = text.partition(":")
    # The length is checked first: Python refuses to parse thousands of digits.
    is_digits = port.isascii() and port.isdigit() and len(port) <= _LONGEST_PORT
    is_port = is_digits and 1 <= int(port) <= _LAST_PORT
    return is_dns_subdomain(host) and (not colon or is_port)


def _is_url(value: object, schemes: tuple[str, ...]) -> bool:
    if not isinstance(value, str):
        return False
    try:
        url = urlsplit(value)
    except ValueError:
        return False
    return bool(url.scheme and url.netloc) and (not schemes or url.scheme in schemes)
