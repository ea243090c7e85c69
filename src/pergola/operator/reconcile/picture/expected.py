"""The steps of a Garden's operation, and the objects that they wait for."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pergola.api.objects import Identity, JsonObject, Key, generation_of, uid_of
from pergola.api.schema.read import Malformed
from pergola.garden.components.catalog import CATALOG
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.client import Client
from pergola.operator.reconcile.picture.steps import (
    UNRENDERED,
    Step,
    deletion_steps,
    dry_run,
    reconciliation_steps,
)
from pergola.operator.reconcile.picture.taking import operation_of
from pergola.operator.reconcile.placeholders import placeholder, with_placeholders
from pergola.operator.run.observed import Template, bare_landscape
from pergola.runtime.clock import Clock

_WILDCARD: Final = Key(NAMESPACE, "wildcard")


@dataclass(frozen=True, slots=True)
class Expected:
    """The steps of one version of a Garden.

    Attributes:
        version: Its uid, its generation, and whether its operation is the deletion.
        problem: Why the steps cannot be derived; empty if they can.
    """

    version: tuple[str, int, bool] = ("", 0, False)
    steps: Sequence[Step] = ()
    problem: str = ""

    @property
    def identities(self) -> set[Identity]:
        """The objects that the steps wait for."""
        return {each.identity for step in self.steps for each in step.awaited}

    def is_of(self, garden: JsonObject) -> bool:
        """Return whether these are the steps of the current Garden."""
        return self.version == _version(garden)


async def expected(
    client: Client, garden: JsonObject, template: Template, clock: Clock
) -> Expected:
    """Return the steps of a Garden. Credentials are neither needed nor read.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    try:
        landscape = await bare_landscape(client, garden, template)
        steps = await asyncio.to_thread(_steps, client, garden, landscape, clock)
    except (Malformed, *UNRENDERED) as error:
        return Expected(_version(garden), problem=f"the tasks cannot be derived: {error}")
    return Expected(_version(garden), steps)


def _steps(client: Client, garden: JsonObject, landscape: Landscape, clock: Clock) -> list[Step]:
    if _is_deletion(garden):
        return deletion_steps(dry_run(client, landscape, clock))
    # Only names matter, and those of certificates are not awaited.
    wildcard = placeholder("Secret", _WILDCARD, ("ca.crt", "tls.crt", "tls.key"))
    complete = with_placeholders(replace(landscape, wildcard_certificate=wildcard), CATALOG)
    return reconciliation_steps(dry_run(client, complete, clock), Key.of(garden))


def _version(garden: JsonObject) -> tuple[str, int, bool]:
    return uid_of(garden), generation_of(garden), _is_deletion(garden)


def _is_deletion(garden: JsonObject) -> bool:
    """Return whether the last operation is the deletion, which begins after any other has ended."""
    return operation_of(garden).type == "Delete"
