"""Errors of reconciling a Garden."""

from collections.abc import Sequence

from pergola.api.objects import Key


class OperatorError(Exception):
    """A Garden cannot be reconciled; the text says why and what to do."""


class NotReady(OperatorError):
    """An object is not in its desired state within its time limit."""

    def __init__(self, kind: str, key: Key, seconds: float, problem: str) -> None:
        """Make the error of an object, with what is wrong with it."""
        super().__init__(f"{kind} {key} is not ready after {seconds:g} s: {problem}")
        self.kind = kind
        self.key = key
        self.problem = problem


class ReferenceMissing(OperatorError):
    """The Garden names a Secret or ConfigMap that does not exist or lacks a key."""

    def __init__(self, kind: str, namespace: str, name: str, key: str = "") -> None:
        """Make the error of an object, or of a key that it lacks."""
        what = f"{kind} {namespace}/{name}"
        found = f'has no key "{key}": add it' if key else "does not exist: create it"
        super().__init__(f"{what}, which the Garden names, {found}")
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.key = key


class ReferencesMissing(OperatorError):
    """The Garden names objects that do not exist."""

    def __init__(self, missing: Sequence[str]) -> None:
        """Make one sentence about all of them.

        Args:
            missing: Each with its field, such as `Secret garden/a (spec.dns.…)`.
        """
        super().__init__(
            f"the Garden names objects that do not exist: {'; '.join(missing)}; create them, or "
            "correct the fields"
        )
        self.missing = tuple(missing)


class ReferencesUnusable(OperatorError):
    """The Garden names objects without the required content."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Make one sentence about all of them.

        Args:
            problems: Each with its object and field, such as `Secret garden/a (spec.…) is empty`.
        """
        super().__init__(
            f"the Garden names objects that cannot be used: {'; '.join(problems)}; correct their "
            "content, or name others"
        )
        self.problems = tuple(problems)


class ReferenceMalformed(OperatorError):
    """A file in an object that the Garden names cannot be read."""

    def __init__(self, kind: str, namespace: str, name: str, key: str, problem: str) -> None:
        """Make the error of a key, with what is wrong with its value."""
        super().__init__(
            f'key "{key}" of {kind} {namespace}/{name}, which the Garden names, cannot be read: '
            f"{problem}"
        )


class ExtensionsMissing(OperatorError):
    """Extensions that the Garden requires are not installed or not ready."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Make one sentence about all of them.

        Args:
            problems: Each kind and type with its problem, such as `DNSRecord/x (…)`.
        """
        super().__init__(f"extension controllers missing or unready: {', '.join(problems)}")
