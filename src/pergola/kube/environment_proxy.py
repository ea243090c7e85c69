"""The proxy for a server by HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as programs in Go choose it."""

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pergola.api.ip_ranges import Address, is_address, is_network, parse_address, parse_network
from pergola.kube.errors import ConfigurationError

PROXY_SCHEMES: Final = ("http", "https")
_PORTS: Final = {"http": "80", "https": "443"}
_HOST_AND_PORT: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*)):([^\[\]:]*)")


def environment_proxy(server: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL of the proxy for a server; None to connect directly.

    Variables in upper case take precedence. Servers on this machine never have a proxy; the API
    server of a pod's own cluster has one like all others.

    Raises:
        ConfigurationError: the variable names a proxy that cannot be used.
    """
    url = urlsplit(server)
    variable = f"{url.scheme.upper()}_PROXY"
    proxy, host = _value(environ, variable), url.hostname or ""
    port = str(url.port or _PORTS[url.scheme])
    if not proxy or _is_here(host) or _is_excluded(host, port, _value(environ, "NO_PROXY")):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if urlsplit(proxy).scheme not in PROXY_SCHEMES or not urlsplit(proxy).hostname:
        raise ConfigurationError(
            f"the variable {variable} is not an http or https URL; other proxies are not supported"
        )
    return proxy


def _value(environ: Mapping[str, str], variable: str) -> str:
    return environ.get(variable) or environ.get(variable.lower()) or ""


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excluded(host: str, port: str, excluded: str) -> bool:
    entries = [entry.strip().lower() for entry in excluded.split(",")]
    return "*" in entries or any(_matches(host, port, entry) for entry in entries if entry)


def _matches(host: str, port: str, entry: str) -> bool:
    address = _address(host)
    if is_network(entry):
        return address is not None and address in parse_network(entry)
    split = _HOST_AND_PORT.fullmatch(entry)
    excluded, excluded_port = (split[1] or split[2], split[3]) if split else (entry, "")
    if not excluded or excluded_port not in ("", port):
        return False
    if (excluded_address := _address(excluded)) is not None:
        return address == excluded_address
    suffix = excluded.removeprefix("*") if excluded.startswith("*.") else excluded
    if suffix.startswith("."):
        return host.endswith(suffix)
    return host == suffix or host.endswith(f".{suffix}")


def _address(host: str) -> Address | None:
    return parse_address(host) if is_address(host) else None
