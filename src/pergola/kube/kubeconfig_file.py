"""Kubeconfig files: reading, merging, and precise errors."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.kube.credentials import read_file
from pergola.kube.errors import ConfigurationError
from pergola.kube.yaml import YamlError, parse

# The list field of each kind of entry, and the field of an item with its content.
_LISTS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True)
class Entry:
    """A cluster, user or context, and its location in a file.

    Attributes:
        path: the field path in the file, e.g. `users[me].user`.
    """

    name: str
    file: Path
    path: str
    values: Mapping[str, Any] = field(repr=False)

    def text(self, name: str) -> str:
        """Return a string; empty if absent."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(name, "must be a string")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; false if absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(name, "must be true or false")
        return value or False

    def texts(self, name: str) -> list[str]:
        """Return a list of strings; empty if absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(name, "must be a list of strings")
        return value

    def items(self, name: str) -> list["Entry"]:
        """Return a list of maps; empty if absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(name, "must be a list of maps")
        return [
            Entry(self.name, self.file, f"{self.path}.{name}[{index}]", item)
            for index, item in enumerate(value)
        ]

    def part(self, name: str) -> "Entry | None":
        """Return a map; None if absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(name, "must be a map")
        return Entry(self.name, self.file, f"{self.path}.{name}", value)

    def data(self, name: str) -> bytes | None:
        """Return decoded base64; None if absent or empty."""
        text = self.text(name)
        if not text:
            return None
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(name, "is not valid base64") from None

    def located(self, name: str) -> Path | None:
        """Return a path, relative to the folder of the file; None if absent or empty."""
        text = self.text(name)
        return self.file.parent / text if text else None

    def source(self, name: str) -> bytes | Path | None:
        """Return the content of `<name>-data` or, without that, the path in `<name>`."""
        return self.data(f"{name}-data") or self.located(name)

    def content(self, name: str) -> bytes | None:
        """Like `source`, but read the file."""
        source = self.source(name)
        if isinstance(source, Path):
            return read_file(source, f"{self.where(name)}:")
        return source

    def where(self, name: str = "") -> str:
        """Return file and field path for error messages."""
        return f"{self.file}: {'.'.join(filter(None, (self.path, name)))}"

    def error(self, name: str, problem: str) -> ConfigurationError:
        """Return the error to raise about a field."""
        return ConfigurationError(f"{self.where(name)} {problem}")


@dataclass(frozen=True)
class Kubeconfig:
    """One kubeconfig file, or several that were merged."""

    files: Sequence[Path]
    current_context: str
    entries: Mapping[str, Mapping[str, Entry]] = field(repr=False)

    def context(self, name: str | None = None) -> Entry:
        """Return the context of that name, or the current one."""
        if name := name or self.current_context:
            return self._find("contexts", name, f'context "{name}" does not exist')
        raise ConfigurationError(
            f"{self._where}: current-context is not set; name one of the contexts{self._known()}"
        )

    def cluster(self, context: Entry) -> Entry:
        """Return the cluster of a context."""
        return self._referred("clusters", context, context.text("cluster"))

    def user(self, context: Entry) -> Entry:
        """Return the user of a context; without credentials if the context names none."""
        if name := context.text("user"):
            return self._referred("users", context, name)
        return Entry("", context.file, context.path, {})

    def _referred(self, kind: str, context: Entry, name: str) -> Entry:
        what = _LISTS[kind]
        if not name:
            raise context.error(what, "is missing")
        return self._find(kind, name, f'{context.path}.{what} names "{name}", which does not exist')

    def _find(self, kind: str, name: str, otherwise: str) -> Entry:
        entry = self.entries[kind].get(name)
        if entry is None:
            raise ConfigurationError(f"{self._where}: {otherwise}{self._known(kind)}")
        return entry

    @property
    def _where(self) -> str:
        return ", ".join(map(str, self.files))

    def _known(self, kind: str = "contexts") -> str:
        return f" ({', '.join(self.entries[kind]) or f'there are no {kind}'})"


def read_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    """Read and merge files; of entries with the same name, the first file's is used.

    Raises:
        ConfigurationError: a file cannot be read, or is not a kubeconfig.
    """
    return parse_kubeconfig([(file, read_file(file, "the kubeconfig")) for file in files])


def parse_kubeconfig(texts: Sequence[tuple[Path, bytes]]) -> Kubeconfig:
    """Parse and merge kubeconfigs from any origin.

    Args:
        texts: texts by their names in errors, which are also the files that their paths are
            relative to.

    Raises:
        ConfigurationError: a text is not a kubeconfig.
    """
    current = ""
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in _LISTS}
    for file, text in texts:
        content = _parse(file, text)
        top = Entry("", file, "", content)
        current = current or top.text("current-context")
        for kind, known in entries.items():
            for entry in _entries(file, content, kind):
                known.setdefault(entry.name, entry)
    return Kubeconfig([file for file, _ in texts], current, entries)


def _parse(file: Path, text: bytes) -> JsonObject:
    try:
        content = parse(text.decode())
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: a kubeconfig must be UTF-8 text") from None
    except YamlError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    if content is not None and not isinstance(content, dict):
        raise ConfigurationError(f"{file}: a kubeconfig must be a map")
    return content or {}


def _entries(file: Path, content: JsonObject, kind: str) -> Iterator[Entry]:
    items = content.get(kind) or []
    if not isinstance(items, list):
        raise ConfigurationError(f"{file}: {kind} must be a list")
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"{file}: {kind}[{index}].name is missing")
        if name in seen:
            raise ConfigurationError(f'{file}: {kind}[{index}].name "{name}" is not unique')
        seen.add(name)
        values = item.get(_LISTS[kind]) or {}
        path = f"{kind}[{name}].{_LISTS[kind]}"
        if not isinstance(values, dict):
            raise ConfigurationError(f"{file}: {path} must be a map")
        yield Entry(name, file, path, values)
