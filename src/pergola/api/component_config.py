"""Shared parts of all components' configuration files, and their loading.

A component's configuration derives from these types if its defaults differ, and passes its type,
its defaults and its rules to `load`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec.inspect as types
from msgspec import Meta

from pergola.api.core_v1_validation import is_dns_label
from pergola.api.durations import DurationError, format_duration, parse_duration
from pergola.api.objects import JsonObject, JsonValue, without_nulls
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration
from pergola.api.schema.read import read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import REQUIRED, Finding, child, item, validate

LogLevel = Literal["debug", "info", "error"]
LogFormat = Literal["json", "text"]


class Debugging(Value):
    """Profiles of the running process."""

    enable_profiling: bool = False
    """Whether to serve profiles along with the metrics."""
    enable_contention_profiling: bool = False
    """Whether the profiles include contention."""


def at_least(value: timedelta, least: timedelta, path: str) -> Iterator[Finding]:
    """Yield a finding if a duration is shorter than allowed."""
    if value < least:
        yield Finding(path, f"must be at least {format_duration(least)}")


def positive(value: timedelta, path: str) -> Iterator[Finding]:
    """Yield a finding if a duration is zero or negative."""
    if value <= timedelta():
        yield Finding(path, "must be greater than 0")


Port = Annotated[int, Meta(ge=0, le=65535)]


class Address(Value):
    """An address to serve; the component's own type has the default port."""

    bind_address: str = ""
    """The address to listen on; all addresses if empty."""
    port: Port = 0
    """The port to listen on; any free port if 0."""


ZERO_IS_UNSET: Final = Meta(extra={"zero": "unset"})
"""Facet of a field whose zero means its default."""


def without_zeros(type_: type[Value], value: JsonObject) -> JsonObject:
    """Return the configuration without the zeros that mean a default."""
    return _struct(types.type_info(type_), value)


def _struct(info: types.Type, value: JsonObject) -> JsonObject:
    if not isinstance(info, types.StructType):
        return value
    declared = {field.encode_name: field.type for field in info.fields}
    return {
        name: _field(declared[name], entry) if name in declared else entry
        for name, entry in value.items()
        if name not in declared or not _is_unset(declared[name], entry)
    }


def _field(declared: types.Type, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        for alternative in _alternatives(declared):
            value = _struct(alternative, value)
    return value


def _is_unset(declared: types.Type, value: JsonValue) -> bool:
    if not isinstance(declared, types.Metadata) or declared.extra != ZERO_IS_UNSET.extra:
        return False
    if isinstance(value, str):
        kinds = _alternatives(declared)
        is_duration = any(isinstance(k, types.CustomType) and k.cls is Duration for k in kinds)
        return _is_zero(value) if is_duration else not value
    return value == 0 and not isinstance(value, bool)


def _is_zero(duration: str) -> bool:
    try:
        return not parse_duration(duration)
    except DurationError:
        return False


def _alternatives(declared: types.Type) -> list[types.Type]:
    match declared:
        case types.Metadata():
            return _alternatives(declared.type)
        case types.UnionType():
            return [one for entry in declared.types for one in _alternatives(entry)]
    return [declared]


class ClientConnection(Value):
    """A connection to a cluster."""

    kubeconfig: str = ""
    """The path of a kubeconfig; empty for the credentials inside the cluster."""
    qps: Annotated[float | None, ZERO_IS_UNSET] = None
    """The maximum number of requests per second; unlimited if absent or negative."""
    burst: Annotated[Annotated[int, Meta(ge=0, le=2**31 - 1)] | None, ZERO_IS_UNSET] = None
    """The maximum number of requests at once."""
    content_type: str = ""
    """The format of request bodies; always JSON."""
    accept_content_types: str = ""
    """The formats of responses; always JSON."""


class LeaderElection(Value):
    """Leader election between replicas."""

    leader_elect: bool = True
    """Whether to elect a leader, which several replicas require."""
    lease_duration: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=15)
    """The time after the last renewal until another replica may take over."""
    renew_deadline: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=10)
    """The time for which a leader tries to renew before it gives up."""
    retry_period: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=2)
    """The time between two attempts."""
    resource_lock: Annotated[str, ZERO_IS_UNSET] = "leases"
    """The kind of the lock."""
    resource_name: Annotated[str, ZERO_IS_UNSET] = ""
    """The name of the lock."""
    resource_namespace: Annotated[str, ZERO_IS_UNSET] = ""
    """The namespace of the lock."""


def check_leader_election(election: LeaderElection, path: str) -> Iterator[Finding]:
    """Yield findings about an enabled leader election."""
    if not election.leader_elect:
        return
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    periods = {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}
    for name, period in periods.items():
        yield from positive(period, child(path, name))
    if lease <= renew:
        yield Finding(child(path, "leaseDuration"), "must be greater than renewDeadline")
    if renew <= 1.2 * retry:
        yield Finding(child(path, "renewDeadline"), "must be greater than 1.2 times retryPeriod")
    if election.resource_lock != "leases":
        yield Finding(child(path, "resourceLock"), 'must be "leases"')
    names = {
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }
    for name, value in names.items():
        if not value:
            yield Finding(child(path, name), "is required while leaderElect is true")


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


class Sharding(Value):
    """Replicas that share the objects of a ring; not in the original."""

    controller_ring: str = ""
    """The ControllerRing that each replica joins as a shard; empty for no sharding. The Lease of a
    shard is in the namespace of the leader election, and uses its times."""


def check_sharding(sharding: Sharding, election: LeaderElection, path: str) -> Iterator[Finding]:
    """Yield findings about sharding."""
    if not sharding.controller_ring:
        return
    at = child(path, "controllerRing")
    if not is_dns_label(sharding.controller_ring):
        yield Finding(at, "must be the name of a ControllerRing, with at most 63 characters")
    if not election.leader_elect:
        yield Finding(at, "needs leaderElection.leaderElect, since a leader runs the rest")
