"""Old and new names of the same settings (spec 10 §13.2, B6; spec 11 §8).

Some blocks have two names: the one in documents, charts and existing files, and the one that the
decoder of some release required. Both are accepted; a setting must be equal under both names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema.validate import Finding, child

_BLOCKS: Final = (
    ("controllers", "managedResource", "managedResources"),
    ("controllers", "node", "nodeCriticalComponents"),
    ("controllers", "kubeletCSRApprover", "csrApprover"),
    ("controllers", "tokenValidator", "tokenInvalidator"),
    ("webhooks", "tokenValidator", "tokenInvalidator"),
)
_WRONG: Final = frozenset({"tokenValidator"})
"""A misspelling in a document, which no decoder ever accepted."""


@dataclass
class Unified:
    """A configuration in which every setting has one name.

    Attributes:
        findings: conflicts, and warnings about misspelt names.
    """

    value: JsonObject
    findings: list[Finding] = field(default_factory=list)
    _written: dict[str, str] = field(default_factory=dict)

    def as_written(self, path: str) -> str:
        """Return the path as the file spells it."""
        for known in _with_parents(path):
            if known in self._written:
                return self._written[known] + path[len(known) :]
        return path

    def unify(self, section: str, old: str, new: str) -> None:
        """Move the settings of one block to its new name."""
        block = self.value.get(section)
        if not isinstance(block, dict) or old not in block:
            return
        old_path, new_path = child(section, old), child(section, new)
        if old in _WRONG:
            self.findings.append(Finding(old_path, f'should be spelled "{new}"', "warning"))
        settings = {name: value for name, value in block.items() if name != old}
        merged = self._merge(settings.get(new), block[old], new_path, old_path)
        self.value = {**self.value, section: {**settings, new: merged}}

    def _merge(self, new: JsonValue, old: JsonValue, new_path: str, old_path: str) -> JsonValue:
        if new is None:
            self._written[new_path] = old_path
            return old
        if isinstance(new, dict) and isinstance(old, dict):
            both = {
                name: self._merge(
                    new.get(name), value, child(new_path, name), child(old_path, name)
                )
                for name, value in old.items()
            }
            return new | both
        if not _same(new, old):
            self.findings.append(
                Finding(old_path, f"contradicts {new_path}, the other spelling; keep one of them")
            )
        return new


def unify_spellings(value: JsonObject) -> Unified:
    """Return the configuration with only new names; the argument is not modified."""
    unified = Unified(value)
    for section, old, new in _BLOCKS:
        unified.unify(section, old, new)
    return unified


def _same(new: JsonValue, old: JsonValue) -> bool:
    if isinstance(new, str) and isinstance(old, str):
        try:
            return parse_duration(new) == parse_duration(old)
        except DurationError:
            return new == old
    return type(new) is type(old) and new == old


def _with_parents(path: str) -> Iterator[str]:
    """Yield a path and its parents: `a.b[0]` → `a.b[0]`, `a.b`, `a`."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[":
            yield path[:end]
