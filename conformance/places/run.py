"""A run of one place: its clusters, the deployment, the checks, and the requests that it took."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from conformance.oracles import Oracle, OracleError
from conformance.places.audit import refused
from conformance.places.checks.setting import furnish, label_nodes
from conformance.places.clusters import Clusters, clusters
from conformance.places.deployment import LIMIT, TAIL, PlaceError, deploy
from conformance.places.place import SORTS, Check, Place, Site
from pergola.kube.errors import KubeError
from pergola.runtime.task_group import gathered
from pergola.sandbox import SandboxError
from pergola.sandbox.process_node import OWN_RESOURCE_MANAGER
from pergola.sandbox.process_node.programs import Programs

_SHOWN: Final = 5  # refused requests
_LONGEST: Final = 600  # characters of a problem


@dataclass
class Outcome:
    """The outcome of a run in a place.

    Attributes:
        held: the number of checks that held, by sort.
        problems: a text for each check that did not hold, and for what stopped the run.
        requests: those of the resource manager.
        refused: a sentence for each request that was forbidden.
    """

    place: Place
    held: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    requests: int = 0
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether everything held, and nothing was forbidden."""
        return not self.problems and not self.refused

    def __str__(self) -> str:
        """Return the line of the outcome, and one for each problem."""
        counts = ", ".join(f"{sort} {self.held[sort]}" for sort in SORTS)
        line = (
            f"{self.place.name:20} {counts}; {self.requests} requests, {len(self.refused)} of them "
            f"forbidden; {self.seconds:.0f} s"
        )
        more = len(self.refused) - _SHOWN
        forbidden = [f"forbidden: {each}" for each in self.refused[:_SHOWN]]
        forbidden += [f"forbidden: {more} more"] if more > 0 else []
        return "\n".join([line, *(f"  {text}" for text in (*self.problems, *forbidden))])


async def run(
    place: Place, oracle: Oracle, limit: float = LIMIT, own: Programs = OWN_RESOURCE_MANAGER
) -> Outcome:
    """Run a place.

    Args:
        limit: seconds for each step of the deployment.
        own: the program that runs as resource manager.
    """
    outcome, began = Outcome(place), time.monotonic()
    try:
        async with clusters(place, own) as found:
            try:
                await _deployed(found, oracle, limit, outcome)
            finally:
                events = [event for log in found.logs for event in log.requests()]
                outcome.requests, outcome.refused = len(events), [*refused(events)]
    except (OracleError, PlaceError, SandboxError) as error:
        outcome.problems.append(str(error))
    outcome.seconds = time.monotonic() - began
    return outcome


async def _deployed(found: Clusters, oracle: Oracle, limit: float, outcome: Outcome) -> None:
    async with found.connected() as (source, target), found.node(source.client):
        site = Site(found.place, source, target)
        for side in (source, target):
            await label_nodes(side.client)
        await deploy(oracle, found, source.client, limit)
        await furnish(site)
        await gathered(_checked(check, site, outcome) for check in found.place.checks)
        if outcome.problems:
            outcome.problems.append(f"the log of its container ends with:\n{found.tail(TAIL)}")


async def _checked(check: Check, site: Site, outcome: Outcome) -> None:
    try:
        await check.run(site)
    except (AssertionError, KubeError, TimeoutError) as error:
        text = (str(error) or type(error).__name__)[:_LONGEST]
        outcome.problems.append(f"{check.sort}, {check.title}: {text}")
    else:
        outcome.held[check.sort] += 1
