"""Labels and texts that the alerts of the garden Prometheus share."""

from typing import Final

LANDSCAPE: Final = "{{$externalLabels.landscape}}"
"""In texts of alerts: the name of the landscape."""
CRITICAL: Final = {"severity": "critical", "topology": "garden"}
WARNING: Final = {"severity": "warning", "topology": "garden"}
INFO: Final = {"severity": "info", "topology": "garden"}
SEED_CRITICAL: Final = {"severity": "critical", "topology": "seed"}
SEED_WARNING: Final = {"severity": "warning", "topology": "seed"}
MUTE_ON_WEEKENDS: Final = {"mute_on_weekends": "true"}


def value_of(query: str, *labels: str) -> str:
    """Return a template for the first value of a query.

    Args:
        query: With one `%s` for each of the labels.
        labels: Labels of the alert.
    """
    if not labels:
        return "{{`" + query + "` | query | first | value}}"
    arguments = " ".join(f"$labels.{label}" for label in labels)
    return "{{printf `" + query + "` " + arguments + " | query | first | value}}"
