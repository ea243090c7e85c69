"""Checks before the operator starts to work (spec 20 §3, spec 21 §1.3)."""

from typing import Final

import orjson

from pergola.api.known.kubernetes_versions import SUPPORTED, parse_version
from pergola.api.objects import map_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.oldest import oldest
from pergola.runtime.process.options import StartError

_SKIPPED: Final = 2


async def runtime_version(client: Client, *, any_version: bool) -> str:
    """Return the Kubernetes version of the runtime cluster, such as `1.34.2`.

    Args:
        any_version: Accept unsupported versions.

    Raises:
        StartError: The version is not supported.
        KubeError: The API server refused, or did not answer.
    """
    text = str(orjson.loads(await client.get_raw("/version")).get("gitVersion", ""))
    found = parse_version(text)
    if found is None or (found.of_minor not in SUPPORTED and not any_version):
        raise StartError(
            f'the runtime cluster has Kubernetes version "{text}"; supported are {SUPPORTED[0]} '
            f"to {SUPPORTED[-1]}"
        )
    return f"{found.major}.{found.minor}.{found.patch}"


async def check_version(client: Client, version: str) -> None:
    """Check that this version of Gardener may follow the one that last reconciled the Garden.

    Raises:
        StartError: It is a downgrade, or skips a minor version.
        KubeError: The API server refused, or did not answer.
    """
    try:
        garden = oldest(await client.list(GARDEN))
    except UnknownKind:
        return
    before = str(map_at(garden or {}, "status", "gardener").get("version") or "")
    problem = version_problem(before, version)
    if problem:
        raise StartError(problem)


def version_problem(before: str, now: str) -> str | None:
    """Return why a version must not follow another, or None; unknown ones may."""
    old, new = parse_version(before), parse_version(now)
    if old is None or new is None:
        return None
    if new < old:
        return (
            f"downgrading Gardener is not supported: the Garden was reconciled by {before}, "
            f"this is {now}; start {before} or newer"
        )
    if new.major == old.major and new.minor >= old.minor + _SKIPPED:
        return (
            f"skipping a minor version of Gardener is not supported: the Garden was "
            f"reconciled by {before}, this is {now}; upgrade to v{old.major}.{old.minor + 1} first"
        )
    return None
