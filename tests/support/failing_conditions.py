"""The series of failing conditions that a process exports."""

from pergola.runtime.metrics import Metrics


def failing_conditions(metrics: Metrics) -> set[tuple[str, str, str]]:
    """Return the kind, the name and the type of each condition with a series."""
    return {
        (labels["kind"], labels["name"], labels["condition"])
        for family in metrics.registry.collect()
        if family.name == "pergola_condition_failing"
        for labels in (sample.labels for sample in family.samples)
    }
