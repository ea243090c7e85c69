"""Errors of sandboxes, in words for users."""


class SandboxError(Exception):
    """A failure of a sandbox; the message gives the cause and the remedy."""
