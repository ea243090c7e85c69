"""Annotations of Services: parsing them, with one sentence for each mistake."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.objects import JsonObject
from pergola.kube.selectors import SelectorError, format_selector, is_empty

T = TypeVar("T")

TCP: Final = "TCP"
_EXPRESSION: Final = ("key", "operator", "values")
_PORT_FIELDS: Final = {name.lower(): name for name in ("port", "protocol", "endPort")}
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_LAST_PORT: Final = 65535
_MOST_DIGITS: Final = 19
_LONGEST_PORT_NAME: Final = 15
_LONGEST_ALIAS: Final = 63
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_LABEL_PART: Final = re.compile(r"[-._A-Za-z0-9]+")


class PolicyPort(NamedTuple):
    """A port in a NetworkPolicy; all ports of the protocol if it has no number or name."""

    protocol: str
    port: int | str | None
    end_port: int | None = None


class Malformed(Exception):
    """A malformed annotation; the text gives the problem and the fix."""


class Parsed(NamedTuple):
    """The valid entries of a list, and the problems with the others."""

    ports: tuple[PolicyPort, ...]
    problems: tuple[str, ...]


class ParsedSelectors(NamedTuple):
    """The valid selectors of a list, and the problems with the others."""

    selectors: tuple[JsonObject, ...]
    problems: tuple[str, ...]


def parse_alias_ports(text: str) -> Parsed:
    """Return the ports of an alias; each needs a number or name, which becomes a policy's name."""
    ports, problems = _each(text, "ports", _named_port)
    return Parsed(merged(ports), problems)


def parse_world_ports(text: str) -> tuple[PolicyPort, ...]:
    """Return the ports that are open to the world; all ports if the list is empty.

    Raises:
        Malformed: an entry is invalid. Skipping it could leave an empty list, which would open all
            ports.
    """
    ports, problems = _each(text, "ports", _port)
    if problems:
        raise Malformed(problems[0])
    return tuple(dict.fromkeys(ports))


def parse_namespace_selectors(text: str) -> ParsedSelectors:
    """Return the selectors of peer namespaces."""
    selectors, problems = _each(text, "label selectors", _selector)
    return ParsedSelectors(tuple(selectors), problems)


def parse_pod_selector(text: str) -> JsonObject:
    """Return the selector of the pods behind a Service.

    Raises:
        Malformed: the text is not a selector, or selects every pod.
    """
    selector = _selector(_json(text, "a label selector"), "")
    if is_empty(selector):
        raise Malformed("it selects every pod of the namespace: set labels")
    return selector


def check_alias(alias: str) -> None:
    """Reject an alias that is not valid in a policy's name and a label.

    Raises:
        Malformed: the alias is invalid.
    """
    if not alias:
        raise Malformed("the alias is empty: name one between from- and -allowed-ports")
    if len(alias) > _LONGEST_ALIAS or not is_dns_subdomain(alias):
        raise Malformed(
            f'the alias "{alias}" must be at most {_LONGEST_ALIAS} lower-case letters, digits, '
            "dashes and dots, with a letter or digit at both ends: rename it"
        )


def check_namespace_alias(alias: str) -> None:
    """Reject a namespace alias that is not valid in a label.

    Raises:
        Malformed: the alias is invalid.
    """
    if not _LABEL_PART.fullmatch(alias):
        raise Malformed(
            f'"{alias}" must be letters, digits, dashes, dots and underscores: '
            "rename it, or remove the annotation"
        )


def merged(ports: Iterable[PolicyPort]) -> tuple[PolicyPort, ...]:
    """Merge ports: keep each protocol and port once; of ranges with one start, the longest."""
    ends: dict[tuple[str, int | str | None], int | None] = {}
    for protocol, port, end in ports:
        known = ends.get((protocol, port))
        ends[protocol, port] = max(known or 0, end or 0) or None
    return tuple(PolicyPort(protocol, port, end) for (protocol, port), end in ends.items())


def port_of(value: object) -> int | str | None:
    """Return a port as a number if possible, even if it is quoted; None if it is not a port."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        digits = value.lstrip("0") or "0"
        # Python refuses to parse thousands of digits, which no port has.
        return int(digits) if len(digits) <= _MOST_DIGITS else value
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    return None


def tidied(selector: JsonObject) -> JsonObject:
    """Return a selector as the API server stores it: without empty parts."""
    tidy = {name: part for name, part in selector.items() if part}
    if "matchExpressions" in tidy:
        tidy["matchExpressions"] = [
            {name: part for name, part in expression.items() if name in _EXPRESSION and part}
            for expression in tidy["matchExpressions"]
        ]
    return tidy


def _each(text: str, what: str, read: Callable[[Any, str], T]) -> tuple[list[T], tuple[str, ...]]:
    entries = _json(text, f"a list of {what}")
    if not isinstance(entries, list):
        raise Malformed(f"must be a JSON list of {what}")
    found: list[T] = []
    problems: list[str] = []
    for index, entry in enumerate(entries):
        try:
            found.append(read(entry, f"[{index}]"))
        except Malformed as error:
            problems.append(str(error))
    return found, tuple(problems)


def _json(text: str, what: str) -> object:
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"must be JSON of {what}: {error}") from None
    return value


def _selector(value: Any, path: str) -> JsonObject:
    at = f"{path}: " if path else ""
    if not isinstance(value, dict):
        raise Malformed(f"{at}must be a label selector: a map with matchLabels or matchExpressions")
    try:
        format_selector(value)
    except SelectorError as error:
        raise Malformed(f"{at}{error}") from None
    return tidied(value)


def _named_port(entry: Any, path: str) -> PolicyPort:
    port = _port(entry, path)
    if port.port is None:
        raise Malformed(f"{path}.port: is missing; name one, by its number or its name")
    return port


def _port(entry: Any, path: str) -> PolicyPort:
    if not isinstance(entry, dict):
        raise Malformed(f'{path}: must be a map such as {{"port": 80, "protocol": "TCP"}}')
    # The original ignores the case of names. A port that is overlooked would open all ports.
    entry = {_PORT_FIELDS.get(name.lower(), name): value for name, value in entry.items()}
    protocol = entry.get("protocol") or TCP
    if protocol not in _PROTOCOLS:
        raise Malformed(f"{path}.protocol: must be one of {', '.join(_PROTOCOLS)}")
    port = _number_or_name(entry.get("port"), path)
    return PolicyPort(protocol, port, _end_port(entry.get("endPort"), port, path))


def _number_or_name(value: object, path: str) -> int | str | None:
    port = port_of(value)
    if value is None:
        return None
    if isinstance(port, int) and 0 < port <= _LAST_PORT:
        return port
    if isinstance(port, str) and len(port) <= _LONGEST_PORT_NAME and _PORT_NAME.fullmatch(port):
        return port
    raise Malformed(
        f"{path}.port: must be a number from 1 to {_LAST_PORT}, or the name of a container port"
    )


def _end_port(value: object, port: int | str | None, path: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not isinstance(port, int):
        raise Malformed(f"{path}.endPort: must be a number, and so must port")
    if not port <= value <= _LAST_PORT:
        raise Malformed(f"{path}.endPort: must be a number from {port} to {_LAST_PORT}")
    return value
