"""Loading of configurations from parsed files: all findings at once, nothing dropped silently."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from pergola.api.component_config.zeros import without_zeros
from pergola.api.objects import JsonObject, JsonValue, without_nulls
from pergola.api.schema.declare import Value
from pergola.api.schema.read import read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import REQUIRED, Finding, child, item, validate

C = TypeVar("C", bound=Value)


class Loaded(NamedTuple, Generic[C]):
    """A valid configuration with its defaults, and warnings for its author."""

    config: C
    warnings: list[str]


class ConfigurationInvalid(ValueError):
    """An invalid configuration; the message lists every offending field."""

    def __init__(self, source: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        between = "\n  " if len(findings) > 1 else " "
        super().__init__(between.join([f"{source} is invalid:", *map(str, findings)]))


class Spelling(Protocol):
    """A configuration in which every setting has one name."""

    value: JsonObject
    findings: list[Finding]

    def as_written(self, path: str) -> str:
        """Return a path as the file spells it."""
        ...


class AsWritten:
    """The spelling of a configuration whose settings have one name only."""

    def __init__(self, value: JsonObject) -> None:
        self.value = value
        self.findings: list[Finding] = []

    def as_written(self, path: str) -> str:
        """Return the path."""
        return path


def load(
    type_: type[C],
    value: JsonValue,
    *,
    api_version: str,
    kind: str,
    source: str,
    check: Callable[[C], Iterable[Finding]],
    fill_defaults: Callable[[C], None] = lambda _: None,
    unify: Callable[[JsonObject], Spelling] = AsWritten,
    unchecked: Collection[str] = (),
    strict: bool = False,
) -> Loaded[C]:
    """Return the configuration in a parsed file.

    A field that is null counts as absent, as do zeros that Go code writes for the default.

    Args:
        value: the JSON.
        source: the name of the file in errors.
        check: yields findings beyond the schema.
        fill_defaults: sets, in place, the defaults that depend on other settings.
        unify: renames settings that have several names to one.
        unchecked: paths whose findings from `check` are ignored, with everything below them.
        strict: whether an unknown field is an error instead of a warning.

    Raises:
        ConfigurationInvalid: with all findings, each at the path that the file has.
    """
    if not isinstance(value, dict):
        raise ConfigurationInvalid(source, [Finding("", "must be a map")])
    if wrong := list(_wrong_kind(value, api_version, kind)):
        raise ConfigurationInvalid(source, wrong)
    # An empty block in YAML is null.
    spelling = unify(without_nulls(value))
    given = without_zeros(type_, spelling.value)
    config, problems = _read(type_, given, fill_defaults, check, unchecked)
    found = [finding._replace(path=spelling.as_written(finding.path)) for finding in problems]
    found = [*spelling.findings, *found]
    if errors := found if strict else _errors(found):
        raise ConfigurationInvalid(source, errors)
    return Loaded(config, [str(finding) for finding in found])


def _wrong_kind(value: JsonObject, api_version: str, kind: str) -> Iterator[Finding]:
    for name, desired in (("apiVersion", api_version), ("kind", kind)):
        if value.get(name) != desired:
            yield Finding(name, f'must be "{desired}"')


def _read(
    type_: type[C],
    value: JsonObject,
    fill_defaults: Callable[[C], None],
    check: Callable[[C], Iterable[Finding]],
    unchecked: Collection[str],
) -> tuple[C, list[Finding]]:
    """Return the usable part of the configuration, and all findings."""
    schema = schema_of(type_)
    findings = validate(schema, value)
    errors = wrong = _errors(findings)
    while wrong:
        value = _without(value, "", {_unusable(finding) for finding in wrong})
        wrong = _errors(validate(schema, value))
    config = read(type_, value, of="configuration")
    fill_defaults(config)
    reported = [*(finding.path for finding in errors), *unchecked]
    return config, [*findings, *(f for f in check(config) if not _overlaps(f.path, reported))]


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def _unusable(finding: Finding) -> str:
    """Return the path to drop so that the rest can be read: the parent of a missing field."""
    return finding.path.rpartition(".")[0] if finding.problem == REQUIRED else finding.path


def _overlaps(path: str, reported: Iterable[str]) -> bool:
    """Return whether the field, one of its parents or one of its parts was reported already."""
    return any(_is_inside(path, other) or _is_inside(other, path) for other in reported)


def _is_inside(path: str, other: str) -> bool:
    return path.startswith(other) and path[len(other) : len(other) + 1] in ("", ".", "[")


def _without(value: JsonObject, path: str, unusable: Collection[str]) -> JsonObject:
    return {
        name: _usable(entry, at, unusable)
        for name, entry in value.items()
        if (at := child(path, name)) not in unusable and item(path, name) not in unusable
    }


def _usable(value: JsonValue, path: str, unusable: Collection[str]) -> JsonValue:
    match value:
        case dict():
            return _without(value, path, unusable)
        case list():
            places = [item(path, index) for index in range(len(value))]
            if any(at in unusable for at in places):
                return []  # without this item, findings about later ones would have wrong indexes
            return [_usable(entry, at, unusable) for at, entry in zip(places, value, strict=True)]
    return value
