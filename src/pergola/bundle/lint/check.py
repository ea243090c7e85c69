"""Application of the house rules to objects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.bundle.errors import BundleError
from pergola.bundle.lint.manifests import Manifests, title
from pergola.bundle.lint.rules import RULES

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class LintError(BundleError):
    """An exception lacks its rule, object or reason."""


class Violation(NamedTuple):
    """A violation of a rule.

    Attributes:
        rule: the id of the rule.
        object: kind, namespace and name, such as `Deployment kube-system/coredns`.
        path: the path of the field; empty for the whole object.
        sentence: the problem and its remedy.
    """

    rule: str
    object: str
    path: str
    sentence: str

    def __str__(self) -> str:
        path = f" {self.path}" if self.path else ""
        return f"{self.object}{path}: {self.sentence} ({self.rule})"


class _Exception(NamedTuple):
    rule: str
    object: str

    def covers(self, violation: Violation) -> bool:
        return self.rule == violation.rule and fnmatchcase(violation.object, self.object)


def lint(
    objects: Sequence[JsonObject],
    *,
    allow: Mapping[str, str] = _NONE,
    external: Collection[str] = (),
) -> list[Violation]:
    """Return all violations of the house rules, in the order of the rules and of the objects.

    Args:
        exceptions: maps a rule and object, such as `host-root DaemonSet kube-system/node`, to the
            reason. `*` in the object's name matches anything.
        external: existing objects that are not among `objects`, such as `Secret kube-system/ca`;
            `*` matches anything.

    Raises:
        LintError: an exception lacks its rule, object or reason.
    """
    exceptions = list(_exceptions(allow))
    manifests = Manifests.of(objects, external)
    return [
        violation
        for violation in _violations(manifests)
        if not any(exception.covers(violation) for exception in exceptions)
    ]


def _violations(manifests: Manifests) -> Iterator[Violation]:
    for rule in RULES:
        for finding in rule.check(manifests):
            yield Violation(rule.id, title(finding.object), finding.path, finding.sentence)


def _exceptions(allow: Mapping[str, str]) -> Iterator[_Exception]:
    rules = {rule.id for rule in RULES}
    for text, reason in allow.items():
        rule, _, obj = text.partition(" ")
        if rule not in rules:
            known = ", ".join(sorted(rules))
            raise LintError(f'exception "{text}" names no rule; there are {known}')
        if not obj:
            raise LintError(f'exception "{text}" names no object; expected is {rule} Kind ns/name')
        if not reason.strip():
            raise LintError(f'exception "{text}" needs a reason')
        yield _Exception(rule, obj)
