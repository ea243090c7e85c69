"""The output of `pergola network status`."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from pergola.cli.network.target import NetworkError, Target
from pergola.cli.output import object_name, print_table, show
from pergola.cli.text import plain_console, say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.network.work import Work


async def show_one(on: "Work", *, output: str, watch: bool) -> None:
    """Print one Network; with `watch`, again whenever the output changes."""
    from contextlib import aclosing

    from pergola.extension_api.caller import NETWORK, readiness
    from pergola.kube.states import watched

    shown: JsonObject | None = None
    async with aclosing(
        watched(on.client, NETWORK.gvk, on.key, interval=NETWORK.interval)
    ) as states:
        async for obj in states:
            if obj is None:
                raise NetworkError(f"Network {on.key} does not exist")
            problem = readiness(obj).problem
            hint = await on.waiting.explain(obj) if problem else ""
            if (now := described(obj, problem, hint)) != shown:
                show(output, data=now, text=partial(print_one, now), names=[_name_in(now)])
                sys.stdout.flush()
            shown = now
            if not watch:
                return


async def show_list(target: Target, selector: str, output: str, *, all_namespaces: bool) -> None:
    """Print all Networks of a namespace, or of all namespaces."""
    from pergola.extension_api.caller import NETWORK, readiness
    from pergola.kube.client import Client

    config = target.config()
    namespace = None if all_namespaces else target.namespace or config.namespace
    async with Client.connect(config) as client:
        found = await client.list(NETWORK.gvk, namespace, labels=selector or None)
    networks = [described(obj, readiness(obj).problem, "") for obj in found]
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    show(
        output,
        data=[*networks],
        names=map(_name_in, networks),
        text=lambda: (
            _print_list(networks, is_wide=output == "wide")
            if networks
            else say(f"no Networks found {where}")
        ),
    )


def described(obj: "JsonObject", problem: str, hint: str) -> "JsonObject":
    """Return a Network for programs: why it is not ready, and its reported status."""
    from pergola.api.objects import Key, map_at, maps_at

    spec, reported = map_at(obj, "spec"), map_at(obj, "status")
    return {
        "name": str(Key.of(obj)),
        "type": spec.get("type"),
        "ready": not problem,
        "problem": problem or None,
        "hint": hint or None,
        "ipFamilies": reported.get("ipFamilies") or [],
        "lastOperation": reported.get("lastOperation"),
        "lastError": reported.get("lastError"),
        "conditions": maps_at(reported, "conditions"),
        "providerStatus": reported.get("providerStatus"),
    }


def print_one(shown: "JsonObject") -> None:
    """Print the result of `described` for people."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Network {shown['name']}", title_justify="left", show_header=False)
    operation, error = shown["lastOperation"] or {}, shown["lastError"] or {}
    rows = {
        "type": shown["type"],
        "ready": "yes" if shown["ready"] else f"no: {shown['problem']}",
        "why": shown["hint"] or "",
        "last operation": _operation(operation),
        "last error": error.get("description") or "",
        "codes": ", ".join(error.get("codes") or ()),
        "IP families": ", ".join(shown["ipFamilies"]),
    }
    rows |= {c["type"]: f"{c.get('status')}: {c.get('message')}" for c in shown["conditions"]}
    for label, value in rows.items():
        if value:
            table.add_row(label, Text(value))
    plain_console().print(table)


def _print_list(networks: "list[JsonObject]", *, is_wide: bool) -> None:
    heads = ("NETWORK", "TYPE", "READY", "LAST OPERATION", "PROBLEM")
    extra = ("IP FAMILIES", "CODES") if is_wide else ()
    print_table((*heads, *extra), [_cells(shown)[: len(heads) + len(extra)] for shown in networks])


def _cells(shown: "JsonObject") -> tuple[str, ...]:
    operation, error = shown["lastOperation"] or {}, shown["lastError"] or {}
    return (
        shown["name"],
        shown["type"] or "",
        "yes" if shown["ready"] else "no",
        f"{operation.get('type', '')} {operation.get('state', '')}".strip() or "none",
        shown["problem"] or "",
        ", ".join(shown["ipFamilies"]),
        ", ".join(error.get("codes") or ()),
    )


def _name_in(shown: "JsonObject") -> str:
    from pergola.extension_api.caller import NETWORK

    name = str(shown["name"]).rpartition("/")[2]
    return object_name(NETWORK.gvk.kind, NETWORK.gvk.group, name)


def _operation(operation: "JsonObject") -> str:
    if not operation:
        return "none"
    done = f"{operation.get('type')} {operation.get('state')}, {operation.get('progress')}%"
    return f"{done} at {operation.get('lastUpdateTime')}: {operation.get('description')}"
