"""What can go wrong with a sandbox, in words for the person in front of the machine."""


class SandboxError(Exception):
    """The sandbox cannot do what was asked; the text says why, and what to do."""
