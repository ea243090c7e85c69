"""The output of `pergola infra` about InfraClusters."""

from contextlib import aclosing
from typing import TYPE_CHECKING

from pergola.cli.output import object_name, print_table
from pergola.cli.output import show as show_as
from pergola.cli.text import plain_console, say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.cli.infra.target import Opened
    from pergola.externally_managed.inspection import Finding, Seen

_COLUMNS = ("namespace", "name", "managedBy", "ready", "reason", "endpoint")
_WATCH_SECONDS = 300


async def status(opened: "Opened", key: "Key", output: str) -> None:
    """Print everything about one InfraCluster except its network."""
    from pergola.externally_managed.inspection import findings, observe

    seen = await observe(opened.client, opened.managed, opened.crd, key)
    found = findings(seen)
    show_as(
        output,
        data=_described(seen, found),
        names=[_name_of(opened, seen.obj)],
        text=lambda: _print_status(seen, found),
    )


async def check(opened: "Opened", key: "Key", output: str) -> bool:
    """Print the problems of one InfraCluster and its network; return whether there are none."""
    from pergola.externally_managed.inspection import Finding, errors, findings

    seen, warnings = await _with_network(opened, key)
    found = [*findings(seen), *(Finding("warning", text) for text in warnings)]
    complete = f"{opened.managed.gvk.kind} {key} and its network are complete"
    show_as(
        output,
        data=_described(seen, found),
        names=[_name_of(opened, seen.obj)],
        text=lambda: _print_findings(found) if found else say(complete),
    )
    return not errors(found)


async def table(opened: "Opened", namespace: str, selector: str, output: str) -> None:
    """Print a line for each InfraCluster of the kind."""
    listed = await opened.client.list(
        opened.managed.gvk, namespace or None, labels=selector or None
    )
    rows = [_row(opened, obj) for obj in listed]
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    heads = [column.upper() for column in _COLUMNS]
    show_as(
        output,
        data=[*rows],
        names=[_name_of(opened, obj) for obj in listed],
        text=lambda: (
            print_table(heads, map(_cells, rows))
            if rows
            else say(f"no {opened.managed.gvk.kind} {where}")
        ),
    )


async def changes(opened: "Opened", namespace: str, name: str, selector: str) -> None:
    """Print a line for each change of an InfraCluster, or of all of the kind, until interrupted."""
    from pergola.kube.selectors import select_name
    from pergola.kube.watch import watch

    resource = await opened.client.resource(opened.managed.gvk)
    while True:
        events = watch(
            opened.client,
            resource,
            namespace or None,
            labels=selector or None,
            fields=select_name(name) if name else None,
            initial_events=True,
            timeout_seconds=_WATCH_SECONDS,
        )
        async with aclosing(events):
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    say("  ".join(_cells(_row(opened, event.object))), flush=True)
                elif event.type == "DELETED":
                    say("  ".join(_cells(_row(opened, event.object))), "deleted", flush=True)


def print_json(value: "JsonObject | list[JsonObject]") -> None:
    """Print JSON for programs."""
    import orjson

    say(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


async def _with_network(opened: "Opened", key: "Key") -> "tuple[Seen, list[str]]":
    """Read an InfraCluster and its network, with the warnings about the network."""
    from pergola.api.cluster_api import SOURCE
    from pergola.api.objects import annotations_of
    from pergola.externally_managed.aws import AwsSource
    from pergola.externally_managed.inspection import observe

    obj = await opened.client.get(opened.managed.gvk, key)
    reference = annotations_of(obj).get(SOURCE, "")
    async with opened.source(reference) as source:
        seen = await observe(
            opened.client, opened.managed, opened.crd, key, source if reference else None
        )
        if isinstance(source, AwsSource) and not seen.source_problems:
            return seen, await source.warnings(obj)
    return seen, []


def _name_of(opened: "Opened", obj: "JsonObject") -> str:
    from pergola.api.objects import name_of

    return object_name(opened.managed.gvk.kind, opened.managed.gvk.group, name_of(obj))


def _row(opened: "Opened", obj: "JsonObject") -> "JsonObject":
    from pergola.api.conditions import get_condition
    from pergola.api.objects import name_of, namespace_of
    from pergola.externally_managed.conditions import READY, conditions_of
    from pergola.externally_managed.contract import endpoint_of
    from pergola.externally_managed.inspection import Seen, is_ready
    from pergola.externally_managed.predicate import manager_of

    endpoint = endpoint_of(obj)
    condition = get_condition(conditions_of(obj), READY) or {}
    return {
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "managedBy": manager_of(obj),
        "ready": is_ready(Seen(opened.managed, obj, opened.crd)),
        "reason": condition.get("reason"),
        "endpoint": str(endpoint) if endpoint.is_valid else None,
    }


def _cells(row: "JsonObject") -> tuple[str, ...]:
    shown = {**row, "ready": "yes" if row["ready"] else "no"}
    if row["managedBy"] is None:
        shown["managedBy"] = "its provider"
    return tuple(str(shown[column] or "-") for column in _COLUMNS)


def _described(seen: "Seen", found: "list[Finding]") -> "JsonObject":
    from pergola.api.field_managers import writers
    from pergola.api.objects import Key, finalizers_of
    from pergola.externally_managed.contract import endpoint_of
    from pergola.externally_managed.inspection import is_ready
    from pergola.externally_managed.predicate import is_paused, manager_of

    endpoint = endpoint_of(seen.obj)
    return {
        "kind": seen.managed.gvk.kind,
        "name": str(Key.of(seen.obj)),
        "managedBy": manager_of(seen.obj),
        "contract": seen.managed.contract.version,
        "apiVersion": seen.managed.gvk.api_version,
        "cluster": str(seen.cluster_key) if seen.cluster_key else None,
        "phase": _phase(seen),
        "paused": is_paused(seen.obj, seen.cluster),
        "ready": is_ready(seen),
        "endpoint": str(endpoint) if endpoint.is_valid else None,
        "failureDomains": _domains(seen),
        "finalizers": finalizers_of(seen.obj),
        "writers": [{"name": name, "last": last} for name, last in writers(seen.obj)],
        "findings": [finding._asdict() for finding in found],
    }


def _phase(seen: "Seen") -> str:
    from pergola.api.objects import map_at

    return str(map_at(seen.cluster or {}, "status").get("phase") or "")


def _domains(seen: "Seen") -> list[str]:
    from pergola.externally_managed.contract import ContractError, failure_domains_of

    try:
        return [d.name for d in failure_domains_of(seen.obj, seen.managed.contract.version)]
    except ContractError:
        return []


def _print_status(seen: "Seen", found: "list[Finding]") -> None:
    from rich.table import Table

    facts = _described(seen, found)
    title = f"{facts['kind']} {facts['name']}"
    printed = Table(title=title, title_justify="left", show_header=False)
    manager = facts["managedBy"]
    last = [f"{writer['name']} ({writer['last']})" for writer in facts["writers"]]
    rows = {
        "managed by": "its provider" if manager is None else manager or '"" (an external manager)',
        "contract": f"{facts['contract']}, read as {facts['apiVersion']}",
        "cluster": f"{facts['cluster'] or 'none'} {facts['phase']}".strip(),
        "paused": "yes" if facts["paused"] else "no",
        "ready": "yes" if facts["ready"] else "no",
        "endpoint": facts["endpoint"] or "none",
        "failure domains": ", ".join(facts["failureDomains"]) or "none",
        "finalizers": ", ".join(facts["finalizers"]) or "none",
        "last writers": ", ".join(last) or "none",
    }
    for label, value in rows.items():
        printed.add_row(label, value)
    plain_console().print(printed)
    _print_findings(found)


def _print_findings(found: "list[Finding]") -> None:
    for finding in found:
        say(f"{finding.severity}: {finding.text}")
