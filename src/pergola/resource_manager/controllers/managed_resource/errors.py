"""Errors in manifests that are detected before any request."""


class ManifestError(ValueError):
    """The base class of these errors; the text names the problem and the field."""
