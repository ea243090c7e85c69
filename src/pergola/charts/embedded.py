"""Charts that an object contains, such as `helm.rawChart` of a ControllerDeployment."""

import base64

from pergola.charts.archive import Chart, read_chart
from pergola.charts.errors import NotAChart
from pergola.charts.limits import DEFAULT_LIMITS, Limits


def embedded_chart(text: str, source: str, limits: Limits = DEFAULT_LIMITS) -> Chart:
    """Return the chart in a base64 text.

    Args:
        source: The object and field that contain it, for error messages.

    Raises:
        NotAChart: It is not a base64-encoded chart archive.
        TooLarge: It exceeds the limits.
    """
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        raise NotAChart(f"{source} is not a Helm chart: it is not base64 of an archive") from None
    return read_chart(content, source, limits)
