"""Whether the namespaces of all Seeds have the new observability password (spec 20 §17.2).

gardener-controller-manager copies it there from the namespace `garden` of the virtual cluster.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, name_of, namespace_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.bundle.versions import Version
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.selectors import format_selector
from pergola.operator.rotation.current import OBSERVABILITY, began, not_preparing
from pergola.operator.rotation.seeds.standing import named, skipped_in
from pergola.operator.rotation.seeds.targets import SEEDS
from pergola.operator.run.run import Run

_ROTATED: Final = "last-rotation-initiation-time"
_ROLE: Final = {"gardener.cloud/role": "global-monitoring"}
_NAMESPACE: Final = "seed-"
_ROTATED_SINCE: Final = Version(1, 150)


class NotPropagated(OperatorError):
    """Namespaces of Seeds do not have the new password."""


def absent(landscape: Landscape) -> str | None:
    """Return why there is nothing to wait for; None if there is.

    Up to Gardener 1.149 gardener-controller-manager generates the password itself.
    """
    if Version.parse(landscape.gardener_version) < _ROTATED_SINCE:
        return f"Gardener {landscape.gardener_version} generates the password of Seeds itself"
    return not_preparing(landscape, OBSERVABILITY)


async def wait(run: Run, garden: Key) -> None:
    """Check that the namespaces of all Seeds have the new password; the task retries.

    Raises:
        NotPropagated: Some do not.
        NotConnected: The virtual cluster cannot be reached.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    skipped = skipped_in(await run.client.find(GARDEN, garden))
    seeds = {name_of(seed) for seed in await SEEDS.list(virtual)} - skipped
    selector = format_selector({"matchLabels": _ROLE})
    secrets = await virtual.list(SECRET, labels=selector, metadata_only=True)
    start = datetime.fromisoformat(began(run.current(), OBSERVABILITY))
    missing = outdated(seeds, secrets, start)
    subject = "Operation rotate-observability-credentials"
    if missing:
        done = f"{len(seeds) - len(missing)} of {len(seeds)} Seeds have the new password"
        run.note(subject, f"{done}, waiting for {named(missing)}")
        raise NotPropagated(
            f"global observability secret is not yet propagated to the namespaces of seeds "
            f"{named(missing)}"
        )
    run.note(subject, "")


def outdated(seeds: Iterable[str], secrets: Iterable[JsonObject], desired: datetime) -> list[str]:
    """Return the names of the Seeds whose namespace has a Secret of an earlier rotation.

    A Secret without the label belongs to a user, who rotates it.
    """
    old = {namespace_of(secret) for secret in secrets if _is_outdated(secret, desired)}
    return sorted(seed for seed in seeds if f"{_NAMESPACE}{seed}" in old)


def _is_outdated(secret: JsonObject, desired: datetime) -> bool:
    rotated = labels_of(secret).get(_ROTATED)
    if rotated is None:
        return False
    return not rotated.isdigit() or int(rotated) < int(desired.timestamp())
