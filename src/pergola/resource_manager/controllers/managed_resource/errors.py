"""Errors of manifests that are detected before any request."""


class ManifestError(ValueError):
    """The root of these errors; the text names the problem and the field."""
