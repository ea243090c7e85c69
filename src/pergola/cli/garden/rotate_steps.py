"""The steps of `pergola garden rotate`: announce, request and follow."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pergola.cli.garden.runtime_cluster import Source, chosen, runtime_template
from pergola.cli.output import show
from pergola.cli.text import plain_console

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.kube.client import Client
    from pergola.operator.reconcile.picture import Picture
    from pergola.operator.rotation.requested import Action, Kind, Request


class Options(NamedTuple):
    """The options of a request for a rotation.

    Attributes:
        skipped: Names of Seeds that are not awaited.
        output: A format of `-o`.
        dry_run: Whether to skip the request.
        waits: Whether to follow the rotation.
    """

    skipped: tuple[str, ...] = ()
    output: str = "text"
    dry_run: bool = False
    waits: bool = True


async def take_step(
    source: Source, kind: "Kind", action: "Action | None", options: Options
) -> bool:
    """Request a step of a rotation; return whether it succeeded, as far as it was followed.

    Args:
        action: None to print the state of the rotations.

    Raises:
        GardenNotFound: The cluster does not have the Garden.
        Refused: The webhook would refuse the request.
        KubeError: The API server refused, or did not answer.
    """
    from pergola.api.objects import Key
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.cli.garden.rotate_text import announced_data, announcement
    from pergola.operator.rotation.requested import request
    from pergola.runtime.logging import configure

    configure("error", "text")
    out = plain_console()
    async with source.cluster.connect() as client:
        key = Key("", await chosen(client, source.garden))
        live = await client.get(GARDEN, key)
        if action is None:
            await _show_standings(client, live, options.output)
            return True
        requested = request(live, kind, action)
        show(
            options.output,
            data=announced_data(key.name, requested, options.skipped),
            text=lambda: out.print(announcement(key.name, requested, options.skipped)),
        )
        if options.dry_run:
            return True
        await _request(client, live, requested, (kind, action), options.skipped)
        return not options.waits or await _follow(client, key, source.config)


async def _show_standings(client: "Client", garden: "JsonObject", output: str = "text") -> None:
    from pergola.cli.garden.rotate_text import data, observe_ages, table

    ages = await observe_ages(client)
    show(output, data=data(garden, ages), text=lambda: plain_console().print(table(garden, ages)))


async def _request(
    client: "Client",
    garden: "JsonObject",
    announced: "Request",
    step: "tuple[Kind, Action]",
    skipped: tuple[str, ...],
) -> None:
    """Write the request as it was announced.

    Conditions change at any time, which is no reason to ask the user again.

    Raises:
        Refused: The Garden has changed so much that the request would mean something else.
    """
    from pergola.api.objects import Key, resource_version_of
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.kube.errors import Conflict
    from pergola.operator.rotation.requested import Refused, request

    key = Key.of(garden)
    while True:
        metadata = {
            "annotations": _annotations(garden, announced.operation, skipped),
            "resourceVersion": resource_version_of(garden),
        }
        try:
            await client.patch(GARDEN, key, {"metadata": metadata})
        except Conflict:
            garden = await client.get(GARDEN, key)
        else:
            return
        if request(garden, *step) != announced:
            raise Refused("the Garden has changed: read the announcement again")


def _annotations(garden: "JsonObject", operation: str, skipped: tuple[str, ...]) -> dict[str, str]:
    from pergola.api import marks
    from pergola.operator.rotation.seeds.standing import SKIPPED_SEEDS, skipped_in

    seeds = ",".join(sorted({*skipped, *skipped_in(garden)}))
    return {marks.OPERATION: operation, **({SKIPPED_SEEDS: seeds} if skipped else {})}


async def _follow(client: "Client", key: "Key", config: Path | None) -> bool:
    """Show the tasks until the step of the rotation has ended; return whether it succeeded."""
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.cli.garden.status_live import show as show_live
    from pergola.cli.garden.status_tree import health
    from pergola.operator.reconcile.picture import following

    out = plain_console()
    template = await runtime_template(client, config)
    async with following(client, key.name, template) as pictures:
        last = await show_live(_until_ended(pictures, client, key), out)
    out.print()
    if last.has_failed:
        out.print(health(last))
    else:
        await _show_standings(client, await client.get(GARDEN, key))
    return not last.has_failed


async def _until_ended(
    pictures: "AsyncIterator[Picture]", client: "Client", key: "Key"
) -> "AsyncIterator[Picture]":
    """Yield pictures until no rotation continues by itself, or an operation has failed."""
    from pergola.api.operator_v1alpha1 import GARDEN, garden_from
    from pergola.operator.rotation.requested import is_under_way

    async for picture in pictures:
        yield picture
        if picture.has_failed and picture.is_over:
            return
        if picture.is_over and not is_under_way(garden_from(await client.get(GARDEN, key))):
            return
