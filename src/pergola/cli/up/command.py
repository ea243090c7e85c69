"""`pergola up`: real clusters with Pergola at work in them."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from pergola.cli.up.options import Tour

Flag = Annotated[bool, Parameter(negative="")]

_INTERRUPTED: Final = 130


def up(
    *,
    once: Flag = False,
    name: Annotated[str, Parameter(help="Name of the sandbox; two names run side by side.")] = "up",
    only: Literal["resources", "garden", "landscape"] | None = None,
    simulated: Flag = False,
    aws: Flag = False,
    examples: Annotated[
        Path | None,
        Parameter(help="Folder of manifests to apply instead of Pergola's examples."),
    ] = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Start real clusters and show Pergola at work in them, in five chapters.

    A control plane starts on this machine; ManagedResources become objects, and one that is deleted
    comes back; webhooks and the AWS extension work; a Garden comes up in a cluster of its own, on a
    real node as root, otherwise on simulated ones; and there is a dashboard to look around. Each
    chapter ends with commands to try it again by hand. Runs until Ctrl-C and leaves nothing but
    caches, and a log if something failed. The first run builds all programs: eight minutes without
    a Garden, and up to an hour with one.

    Parameters
    ----------
    once
        Stop after the demonstration; exit 0 only if all of it succeeded.
    only
        Show only the chapters about managed resources, only those about the Garden, or a whole
        landscape: a Garden, a Seed that the original's gardenlet runs, and a Shoot.
    simulated
        Run the Garden, or the Seed of a landscape, on simulated nodes even if this machine can run
        a real one.
    aws
        Add a Shoot on a simulated AWS to a landscape, with machines; all nodes are simulated then.
    kubeconfig
        Use this cluster instead of a sandbox; without a Garden.
    context
        Context of that kubeconfig.
    """
    tour = Tour(once, name, only, simulated or aws, examples, kubeconfig, context, aws)
    if aws and not tour.has_landscape:
        from pergola.cli.up.story import UpError

        raise UpError("--aws adds a Shoot to a landscape: it needs --only landscape")
    if not asyncio.run(_up(tour)):
        sys.exit(_INTERRUPTED)


async def _up(tour: Tour) -> bool:
    """Tell the story; return whether it was completed, or continued until it was stopped."""
    from pergola.cli.up.chapters import tell
    from pergola.cli.up.journal import journal
    from pergola.cli.up.story import Story, UpError, console
    from pergola.runtime.logging import describe
    from pergola.runtime.process.signals import ended_by_signals

    story = Story(console(), chapters=tour.chapters)
    with journal(tour.name) as log, ended_by_signals() as stopped:
        told = asyncio.create_task(tell(tour, story))
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait({told, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not told.done():
            story.console.print("\nStopping: all that was started here ends now.")
            told.cancel()
            await asyncio.gather(told, return_exceptions=True)
            return not tour.once
        if error := told.exception():
            raise UpError(f"{story.title}: {describe(error)}; the log is {log}") from error
    return True
