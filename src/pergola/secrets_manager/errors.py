"""The error of this room."""


class SecretsManagerError(Exception):
    """A credential cannot be generated, adopted or found; the text says which one and why."""
