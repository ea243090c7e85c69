"""The error of this room."""


class CertificateError(Exception):
    """A certificate or key cannot be used; the text says which one and why."""
