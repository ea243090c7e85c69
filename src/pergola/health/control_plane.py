"""The health of a control plane: its etcds, and its Deployments (spec 21 §2.3).

An etcd that is down takes everything else down with it. The checks are therefore in causal order,
and only the first failing one is reported, with all objects that it finds.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject, generation_of, maps_at
from pergola.health.components import check_etcd
from pergola.health.conditions import Unmet, unmet
from pergola.health.managed_resources import CareFailure
from pergola.health.numbers import number
from pergola.health.workloads import AVAILABLE

ETCD_MISSING: Final = "EtcdMissing"
ETCD_UNHEALTHY: Final = "EtcdUnhealthy"
DEPLOYMENT_MISSING: Final = "DeploymentMissing"
DEPLOYMENT_UNHEALTHY: Final = "DeploymentUnhealthy"

Problems = Mapping[str, str]
"""The problem of each existing object, by name; empty for healthy ones."""


def check_control_plane(
    etcds: Problems,
    deployments: Problems,
    *,
    required_etcds: Collection[str],
    required_deployments: Collection[str],
) -> CareFailure | None:
    """Return the problem of a control plane, or None."""
    return next(_failures(etcds, deployments, required_etcds, required_deployments), None)


def etcd_problem(obj: JsonObject) -> str:
    """Return the problems of an Etcd, with its last errors."""
    problem = check_etcd(obj)
    if problem is None:
        return ""
    errors = [str(error.get("description") or "") for error in maps_at(obj, "status", "lastErrors")]
    named = ", ".join(filter(None, errors))
    return f"{problem} ({named})" if named else problem


def deployment_problem(obj: JsonObject) -> str:
    """Return why a Deployment is unhealthy, in the wording that clients match, or nothing."""
    observed, generation = number(obj, "status", "observedGeneration"), generation_of(obj)
    if observed < generation:
        return f"observed generation outdated ({observed}/{generation})"
    return next(map(_words, unmet(obj, AVAILABLE)), "")


def _failures(
    etcds: Problems,
    deployments: Problems,
    required_etcds: Collection[str],
    required_deployments: Collection[str],
) -> Iterator[CareFailure]:
    if missing := sorted(set(required_etcds) - etcds.keys()):
        yield CareFailure(ETCD_MISSING, f"Missing required etcds: [{', '.join(missing)}]")
    if unhealthy := _unhealthy("Etcd extension resource", etcds):
        yield CareFailure(ETCD_UNHEALTHY, unhealthy)
    if missing := sorted(set(required_deployments) - deployments.keys()):
        yield CareFailure(
            DEPLOYMENT_MISSING, f"Missing required deployments: [{', '.join(missing)}]"
        )
    if unhealthy := _unhealthy("Deployment", deployments):
        yield CareFailure(DEPLOYMENT_UNHEALTHY, unhealthy)


def _unhealthy(kind: str, problems: Problems) -> str:
    return "; ".join(
        f'{kind} "{name}" is unhealthy: {problem}'
        for name, problem in sorted(problems.items())
        if problem
    )


def _words(problem: Unmet) -> str:
    (kind, expected, _), found = problem
    if found is None:
        return f'condition "{kind}" is missing'
    return (
        f'condition "{kind}" has invalid status {found.get("status")} (expected {expected}) '
        f"due to {found.get('reason') or 'no reason'}: {found.get('message') or 'no message'}"
    )
