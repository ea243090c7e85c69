"""Labels and texts that the alerts of the garden Prometheus share."""

from typing import Final

LANDSCAPE: Final = "{{$externalLabels.landscape}}"
"""The template for the name of the landscape in texts of alerts."""
CRITICAL: Final = {"severity": "critical", "topology": "garden"}
WARNING: Final = {"severity": "warning", "topology": "garden"}
INFO: Final = {"severity": "info", "topology": "garden"}
SEED_CRITICAL: Final = {"severity": "critical", "topology": "seed"}
SEED_WARNING: Final = {"severity": "warning", "topology": "seed"}
MUTE_ON_WEEKENDS: Final = {"mute_on_weekends": "true"}


def value_of(query: str, *labels: str) -> str:
    """Return a template for the first value of a query.

    Args:
        query: The query, with a `%s` for each label.
        labels: Names of the alert's labels whose values fill the query.
    """
    if not labels:
        return "{{`" + query + "` | query | first | value}}"
    arguments = " ".join(f"$labels.{label}" for label in labels)
    return "{{printf `" + query + "` " + arguments + " | query | first | value}}"
