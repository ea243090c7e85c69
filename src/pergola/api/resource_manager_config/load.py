"""From a parsed file to a configuration: every finding at once, nothing dropped silently."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.resource_manager_config.defaults import fill_defaults
from pergola.api.resource_manager_config.spellings import unify_spellings
from pergola.api.resource_manager_config.v1alpha1 import (
    API_VERSION,
    KIND,
    ResourceManagerConfiguration,
)
from pergola.api.resource_manager_config.validation import check
from pergola.api.schema.read import read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import REQUIRED, Finding, child, item, validate


class Loaded(NamedTuple):
    """A valid configuration, with its defaults, and what its author should know."""

    config: ResourceManagerConfiguration
    warnings: list[str]


class ConfigurationInvalid(ValueError):
    """A configuration that cannot work; the text names every offending field."""

    def __init__(self, source: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        between = "\n  " if len(findings) > 1 else " "
        super().__init__(between.join([f"{source} is invalid:", *map(str, findings)]))


def configuration_from(
    value: JsonValue, *, source: str = "configuration", unchecked: Collection[str] = ()
) -> Loaded:
    """Return the configuration in a parsed file.

    Old and new names of settings both count. A field that is null counts as absent, one that is
    not known is a warning.

    Args:
        value: JSON.
        source: what to call the file in the error.
        unchecked: blocks that need not be complete, such as `leaderElection`.

    Raises:
        ConfigurationInvalid: with all findings, each at the path that the file has.
    """
    if not isinstance(value, dict):
        raise ConfigurationInvalid(source, [Finding("", "must be a map")])
    if wrong := list(_wrong_kind(value)):
        raise ConfigurationInvalid(source, wrong)
    unified = unify_spellings(_without_nulls(value))
    config, problems = _read(unified.value, unchecked)
    found = [f._replace(path=unified.as_written(f.path)) for f in problems]
    found = [*unified.findings, *found]
    if errors := _errors(found):
        raise ConfigurationInvalid(source, errors)
    return Loaded(config, [str(finding) for finding in found])


def _wrong_kind(value: JsonObject) -> Iterator[Finding]:
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(name) != wanted:
            yield Finding(name, f'must be "{wanted}"')


def _read(
    value: JsonObject, unchecked: Collection[str]
) -> tuple[ResourceManagerConfiguration, list[Finding]]:
    """The configuration as far as it is usable, and all findings."""
    schema = schema_of(ResourceManagerConfiguration)
    findings = validate(schema, value)
    errors = wrong = _errors(findings)
    while wrong:
        value = _without(value, "", {_unusable(finding) for finding in wrong})
        wrong = _errors(validate(schema, value))
    config = read(ResourceManagerConfiguration, value, of="configuration")
    fill_defaults(config)
    told = [finding.path for finding in errors]
    told += unchecked
    return config, [*findings, *(f for f in check(config) if not _overlaps(f.path, told))]


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def _unusable(finding: Finding) -> str:
    """What has to go, so that the rest can be read: where a field is missing, what lacks it."""
    return finding.path.rpartition(".")[0] if finding.problem == REQUIRED else finding.path


def _overlaps(path: str, told: Iterable[str]) -> bool:
    """Whether something was said already about the field, its parents or its parts."""
    return any(_is_inside(path, other) or _is_inside(other, path) for other in told)


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
                return []  # with a gap, findings about later items would name wrong places
            return [_usable(entry, at, unusable) for at, entry in zip(places, value, strict=True)]
    return value


def _without_nulls(value: JsonObject) -> JsonObject:
    """Go's decoder takes null for absent; an empty block in YAML is null."""
    return {
        name: _without_nulls(entry) if isinstance(entry, dict) else entry
        for name, entry in value.items()
        if entry is not None
    }
