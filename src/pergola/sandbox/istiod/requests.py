"""Envoy's routes of HTTP requests, from the rules of VirtualServices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.sandbox.istiod.routes import Destination, destinations
from pergola.sandbox.istiod.termination import Host

_ACTIONS: Final = frozenset(
    ("name", "match", "route", "redirect", "directResponse", "rewrite", "timeout", "headers")
)
_CONDITIONS: Final = frozenset(
    ("name", "uri", "ignoreUriCase", "method", "authority", "headers", "withoutHeaders", "port")
)
_CODES: Final = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}
_UNAVAILABLE: Final = 503


def routes(host: Host, number: int) -> Iterator[JsonObject]:
    """Yield the routes of a host; the first that matches a request wins.

    Args:
        number: the port of the gateway's Service.
    """
    for rule in host.rules:
        action = _action(rule, host.namespace)
        for match in maps_at(rule, "match") or [{}]:
            # A condition that is unknown here could exclude requests: better none than all.
            if match.get("port", number) == number and match.keys() <= _CONDITIONS:
                name = {"name": rule["name"]} if rule.get("name") else {}
                yield {**name, "match": _match(match), **action}


def unsupported(rule: Mapping[str, Any]) -> set[str]:
    """Return the fields of an HTTP rule that have no effect here."""
    conditions = {field for match in maps_at(rule, "match") for field in match}
    return (rule.keys() - _ACTIONS) | {f"match.{field}" for field in conditions - _CONDITIONS}


def target(found: Sequence[Destination]) -> JsonObject:
    """Return the target of requests or connections: one cluster or, by weight, several."""
    if len(found) == 1:
        return {"cluster": cluster_name(found[0].host, found[0].port)}
    weighted = [
        {"name": cluster_name(d.host, d.port), "weight": d.weight} for d in found if d.weight
    ]
    return {"weighted_clusters": {"clusters": weighted}}


def cluster_name(host: str, port: int) -> str:
    """Return the name of a Service's cluster."""
    return f"outbound|{port}||{host}"


def seconds(duration: str | None) -> str:
    """Return a duration as Envoy's JSON writes it, or an empty text if there is none."""
    try:
        return f"{parse_duration(duration).total_seconds():g}s" if duration else ""
    except DurationError:
        return ""


def _match(match: JsonObject) -> JsonObject:
    uri = map_at(match, "uri")
    found: JsonObject = {"prefix": "/"}
    if "exact" in uri:
        found = {"path": uri["exact"]}
    elif "prefix" in uri:
        found = {"prefix": uri["prefix"]}
    elif "regex" in uri:
        found = {"safe_regex": {"regex": uri["regex"]}}
    if match.get("ignoreUriCase"):
        found["case_sensitive"] = False
    headers = list(_headers(match))
    return {**found, "headers": headers} if headers else found


def _headers(match: JsonObject) -> Iterator[JsonObject]:
    for name, field in ((":method", "method"), (":authority", "authority")):
        if match.get(field):
            yield _header(name, match[field])
    for name, condition in map_at(match, "headers").items():
        yield _header(name, condition)
    for name, condition in map_at(match, "withoutHeaders").items():
        yield {**_header(name, condition), "invert_match": True}


def _header(name: str, condition: JsonObject) -> JsonObject:
    for kind in ("exact", "prefix"):
        if kind in condition:
            return {"name": name, "string_match": {kind: condition[kind]}}
    if "regex" in condition:
        return {"name": name, "string_match": {"safe_regex": {"regex": condition["regex"]}}}
    return {"name": name, "present_match": True}


def _action(rule: JsonObject, namespace: str) -> JsonObject:
    found = tuple(destinations(rule, namespace))
    if "redirect" in rule:
        return {"redirect": _redirect(map_at(rule, "redirect"))}
    if "directResponse" in rule or not found:
        return {"direct_response": _direct_response(map_at(rule, "directResponse"))}
    rewrite = map_at(rule, "rewrite")
    # Without a timeout: Envoy's own of 15 s would end watches.
    action = {**target(found), "timeout": seconds(rule.get("timeout")) or "0s"}
    if rewrite.get("uri"):
        action["prefix_rewrite"] = rewrite["uri"]
    if rewrite.get("authority"):
        action["host_rewrite_literal"] = rewrite["authority"]
    return {"route": action, **_changed_headers(map_at(rule, "headers"))}


def _redirect(redirect: JsonObject) -> JsonObject:
    fields = {"uri": "path_redirect", "authority": "host_redirect", "scheme": "scheme_redirect"}
    found = {theirs: redirect[ours] for ours, theirs in fields.items() if redirect.get(ours)}
    return {**found, "response_code": _CODES.get(redirect.get("redirectCode", 301), _CODES[301])}


def _direct_response(response: JsonObject) -> JsonObject:
    body = map_at(response, "body").get("string")
    status = {"status": response.get("status", _UNAVAILABLE)}
    return {**status, "body": {"inline_string": body}} if body else status


def _changed_headers(headers: JsonObject) -> JsonObject:
    changes: JsonObject = {}
    for side in ("request", "response"):
        edits = map_at(headers, side)
        added = [
            {"header": {"key": name, "value": value}, "append_action": action}
            for kind, action in (
                ("set", "OVERWRITE_IF_EXISTS_OR_ADD"),
                ("add", "APPEND_IF_EXISTS_OR_ADD"),
            )
            for name, value in map_at(edits, kind).items()
        ]
        if added:
            changes[f"{side}_headers_to_add"] = added
        if edits.get("remove"):
            changes[f"{side}_headers_to_remove"] = list(edits["remove"])
    return changes
