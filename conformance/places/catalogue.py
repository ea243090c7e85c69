"""The nine places, each with the checks of what the original configures there."""

from typing import Final

from conformance.places.checks import applied, approved, mutated, refused
from conformance.places.place import SYSTEM, Checks, Place

_GARDEN: Final = "garden"
_SHOOT: Final = "shoot--e2e--shoot"

_ALL: Final[Checks] = (applied.MANAGED_RESOURCES, applied.PRUNED, refused.REPORTED)
_RUNTIME: Final[Checks] = (
    *_ALL,
    applied.NETWORK_POLICIES,
    applied.GATEWAYS,
    mutated.TOKEN,
    mutated.GATEWAY,
    mutated.HIGH_AVAILABILITY,
    refused.DEFINITIONS,
    refused.EXTENSIONS,
)
_SEED: Final[Checks] = (*_RUNTIME, mutated.AUTOSCALERS)
_TARGET: Final[Checks] = (*_ALL, applied.OWN_RESOURCES, applied.ACCESS)
_HOSTED: Final[Checks] = (*_TARGET, refused.ELSEWHERE)
_WORKERS: Final[Checks] = (
    applied.NODES,
    applied.DELAYS,
    mutated.TOKEN,
    mutated.SPREAD,
    mutated.SYSTEM_COMPONENTS,
    approved.KUBELETS,
    approved.AGENTS,
    refused.KUBELETS,
    refused.AGENTS,
)

PLACES: Final = (
    Place(
        "garden",
        "a Garden's runtime cluster",
        _GARDEN,
        (*_SEED, mutated.OWN_GATEWAY),
        is_runtime=True,
    ),
    Place(
        "virtual",
        "a virtual garden",
        _GARDEN,
        _HOSTED,
        prefix="virtual-garden-",
        has_target=True,
    ),
    Place("seed", "a Seed", _GARDEN, _SEED, is_runtime=True),
    Place(
        "seed-ha",
        "a Seed with three zones, seccomp profiles, and NetworkPolicies for a team",
        _GARDEN,
        (*_SEED, mutated.SECCOMP, applied.TEAM_POLICIES),
        is_runtime=True,
    ),
    Place(
        "shoot",
        "a Shoot with workers",
        _SHOOT,
        (
            *_HOSTED,
            *_WORKERS,
            mutated.HIGH_AVAILABILITY,
            mutated.SCHEDULER,
            mutated.SERVICE_HOST,
            mutated.AUTOSCALERS,
        ),
        has_target=True,
        authorizes=True,
    ),
    Place("workerless", "a workerless Shoot", _SHOOT, _HOSTED, has_target=True),
    Place(
        "selfhosted-garden",
        "a self-hosted Shoot, namespace garden",
        _GARDEN,
        (*_RUNTIME, mutated.SYSTEM_COMPONENTS),
        is_runtime=True,
    ),
    Place(
        "selfhosted-shoot",
        "a self-hosted Shoot, namespace kube-system",
        SYSTEM,
        (*_TARGET, *_WORKERS, mutated.HIGH_AVAILABILITY),
        authorizes=True,
    ),
    Place(
        "selfhosted-bootstrap",
        "a self-hosted Shoot while it is bootstrapped",
        SYSTEM,
        (*_TARGET, *_WORKERS),
        authorizes=True,
    ),
)
