"""What can be wrong with a manifest, before any server has seen it."""


class ManifestError(ValueError):
    """Root of all: the text says what is wrong, and at which field."""
