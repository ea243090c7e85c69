"""Errors in manifests that are detected before any request, and texts of other errors."""

from pergola.api.objects import GroupVersionKind
from pergola.kube.errors import KubeError, is_outage


class ManifestError(ValueError):
    """The base class of these errors; the text names the problem and the field."""


def error_text(error: Exception, gvk: GroupVersionKind) -> str:
    """Return the text of an error about an object, naming its API group if that does not answer."""
    if gvk.group and isinstance(error, KubeError) and is_outage(error):
        return f"API group {gvk.api_version} does not answer: {error}"
    return str(error)
