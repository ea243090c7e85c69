"""The rules for waiting in tasks of components: pure functions of live objects.

The flow waits with these rules, and commands use the same ones to explain its waits.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pergola.api.kinds import DEPLOYMENT
from pergola.api.managed_resource_status import (
    applied_problem,
    deletion_problem,
    healthy_problem,
)
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Managed, Removable, Rendered
from pergola.garden.landscape import etcd_objects
from pergola.health import check, has_rule, progressing
from pergola.health.numbers import generation_problem, number
from pergola.operator.run.waiting import Problem, gone


class Awaited(NamedTuple):
    """An object that a task waits for, and the rule that ends the wait."""

    identity: Identity
    problem_of: Problem


def awaited(rendered: Rendered) -> Iterator[Awaited]:
    """Yield the objects of a component that must be ready, those of the operator first."""
    for obj in rendered.direct:
        identity = Identity(GroupVersionKind.of(obj), Key.of(obj))
        if is_awaited(identity.gvk):
            yield Awaited(identity, direct_problem(identity.gvk))
    for managed in rendered.managed:
        identity = Identity(MANAGED_RESOURCE, Key(managed.namespace, managed.name))
        yield Awaited(identity, managed_problem(managed))
        if managed.deployment:
            yield awaited_deployment(managed)


def awaited_gone(removable: Removable) -> Iterator[Awaited]:
    """Yield the objects of a component that must be gone."""
    for key in removable.managed:
        yield Awaited(Identity(MANAGED_RESOURCE, key), still_managed)
    for identity in removable.direct:
        yield Awaited(identity, gone)


def is_awaited(gvk: GroupVersionKind) -> bool:
    """Return whether more than the existence of an object of this kind matters."""
    return gvk == etcd_objects.ETCD or has_rule(gvk)


def direct_problem(gvk: GroupVersionKind) -> Problem:
    """Return the rule for objects of a kind that the operator applies itself."""
    return etcd_objects.problem if gvk == etcd_objects.ETCD else _problem


def managed_problem(managed: Managed) -> Problem:
    """Return the rule for a ManagedResource: applied and, unless its Deployment counts, healthy."""
    checks = [applied_problem]
    if not managed.deployment:
        checks.append(healthy_problem)

    def problem(resource: JsonObject | None) -> str | None:
        if resource is None:
            return "it does not exist"
        return next(filter(None, (check(resource) for check in checks)), None)

    return problem


def awaited_deployment(managed: Managed) -> Awaited:
    """Return the Deployment of a ManagedResource, to await once the ManagedResource is applied."""
    identity = Identity(DEPLOYMENT, Key(managed.namespace, managed.deployment))
    return Awaited(identity, direct_problem(DEPLOYMENT))


def still_managed(resource: JsonObject | None) -> str | None:
    """Return why a ManagedResource still exists, or None if it is gone."""
    return deletion_problem(resource or {}) or gone(resource)


def _problem(obj: JsonObject | None) -> str | None:
    """Return why an object is not healthy or not rolled out; None if it is, or has no rule."""
    if obj is None:
        return "it does not exist"
    return None if _serves(obj) else check(obj) or progressing(obj)


def _serves(obj: JsonObject) -> bool:
    """Return whether all replicas of a Deployment have its current template and are ready.

    They count as available only after `minReadySeconds`, during which earlier replicas are kept.
    Without earlier replicas, that wait would be pointless.
    """
    if GroupVersionKind.of(obj) != DEPLOYMENT or generation_problem(obj):
        return False
    desired = number(obj, "spec", "replicas")
    counted = ("replicas", "updatedReplicas", "readyReplicas")
    return desired > 0 and all(number(obj, "status", each) == desired for each in counted)
