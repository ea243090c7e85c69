"""Prometheuses and Alertmanagers of the Prometheus operator (spec 10 §8.3, §9)."""

from pergola.api.objects import JsonObject, generation_of
from pergola.health.conditions import Requirement, condition, conditions_problem
from pergola.health.numbers import number
from pergola.health.workloads import replicas, updated_problem


def monitoring_unhealthy(obj: JsonObject) -> str | None:
    """Check that all replicas of a Prometheus or Alertmanager are available."""
    return _current_problem(obj, "Available") or _available_problem(obj)


def monitoring_progressing(obj: JsonObject) -> str | None:
    """Check that a Prometheus or Alertmanager is reconciled and all its replicas are updated."""
    return _current_problem(obj, "Reconciled") or updated_problem(obj)


def _current_problem(obj: JsonObject, kind: str) -> str | None:
    """Return why a condition is outdated, or None: each has its own observed generation."""
    found = condition(obj, kind)
    observed, generation = number(found or {}, "observedGeneration"), generation_of(obj)
    if found is not None and observed < generation:
        return f"condition {kind} is about generation {observed}, behind generation {generation}"
    return conditions_problem(obj, (Requirement(kind),))


def _available_problem(obj: JsonObject) -> str | None:
    available, desired = number(obj, "status", "availableReplicas"), replicas(obj)
    return None if available >= desired else f"{available} of {desired} replicas are available"
