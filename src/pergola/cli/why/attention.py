"""The output of `pergola why` without an object: what needs attention, as on the dashboard."""

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pergola.api.texts import counted
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.output import object_name, print_table, show
from pergola.cli.text import lasting, say
from pergola.health.times import read_time
from pergola.why.attention import Attention, attention

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.dashboard.state.cards import Card

_HEADS = ("NAMESPACE", "OBJECT", "STATE", "SINCE", "PROBLEM")


def list_attention(options: ScopeOptions, output: str) -> None:
    """List what needs attention, say what was checked, and exit with 1 if there is anything."""
    namespace = options.wide_scope()
    now = datetime.now(UTC)
    found = asyncio.run(_observe(options, namespace, now))
    summary = _summary(found, namespace)

    def text() -> None:
        if found.cards:
            print_table(_HEADS, [_cells(card, now) for card in found.cards])
        say(summary)

    show(
        output, data=[_data(card) for card in found.cards], text=text, names=map(_name, found.cards)
    )
    if output != "text":
        say(summary, file=sys.stderr)
    if found.cards:
        sys.exit(1)


async def _observe(options: ScopeOptions, namespace: str | None, now: datetime) -> Attention:
    async with options.connect() as client:
        return await attention(client, namespace, now)


def _summary(found: Attention, namespace: str | None) -> str:
    total, kinds = sum(found.checked.values()), counted(len(found.checked), "kind")
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    checked = f"{counted(total, 'object')} of {kinds} {where}"
    if found.unread:
        names = ", ".join(gvk.kind for gvk in found.unread)
        checked += f"; not checked, because you may not list them: {names}"
    if found.cards:
        return (
            f"{len(found.cards)} need{'s' * (len(found.cards) == 1)} attention; checked {checked}"
        )
    return f"nothing needs attention; checked {checked}"


def _cells(card: "Card", now: datetime) -> tuple[str, ...]:
    return (
        card.key.namespace,
        f"{card.gvk.kind}/{card.key.name}",
        card.verdict.state,
        lasting(read_time(card.since), now),
        card.verdict.problem,
    )


def _data(card: "Card") -> "JsonObject":
    return {
        "apiVersion": card.gvk.api_version,
        "kind": card.gvk.kind,
        "namespace": card.key.namespace,
        "name": card.key.name,
        "state": card.verdict.state.value,
        "since": card.since,
        "problem": card.verdict.problem,
    }


def _name(card: "Card") -> str:
    return object_name(card.gvk.kind, card.gvk.group, card.key.name)
