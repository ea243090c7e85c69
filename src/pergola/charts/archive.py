"""Chart archives, which are checked before Helm reads them, since they are untrusted."""

import io
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from pergola.api.objects import JsonObject
from pergola.charts.blobs import digest_of
from pergola.charts.errors import NotAChart, TooLarge
from pergola.charts.limits import DEFAULT_LIMITS, MIB, Limits
from pergola.charts.schema import SCHEMA, schema_problem
from pergola.kube.yaml import YamlError, parse

_GZIP: Final = 31  # the window bits that make zlib expect a gzip header
_METADATA: Final = "Chart.yaml"
_DEPENDENCIES: Final = "charts"
_ARCHIVE: Final = ".tgz"
_DEEPEST: Final = 4
"""The deepest level of archives in archives."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart as an archive.

    Attributes:
        source: Where it comes from, for error messages.
        name, version: As its `Chart.yaml` says.
        content: The archive: a gzipped tar file.
        digest: The digest of the archive.
    """

    source: str
    name: str
    version: str
    content: bytes = field(repr=False)
    digest: str


def read_chart(content: bytes, source: str, limits: Limits = DEFAULT_LIMITS) -> Chart:
    """Return the chart in an archive; large ones take a while.

    Raises:
        NotAChart: It is not an archive of one chart, contains links, devices or outside paths, or
            has a schema that refers to other files or addresses.
        TooLarge: It exceeds the limits, together with the archives of its dependencies.
    """
    if len(content) > limits.archive_bytes:
        raise too_large(source, "the archive", limits.archive_bytes)
    metadata, _ = _inspected(content, source, limits)
    name, version = (str(metadata.get(part) or "") for part in ("name", "version"))
    if not (name and version):
        raise _not_a_chart(source, f"its {_METADATA} has no name or no version")
    return Chart(source, name, version, content, digest_of(content))


def _inspected(
    content: bytes, source: str, limits: Limits, depth: int = 0
) -> tuple[JsonObject, int]:
    """Return the metadata of a chart, and the unpacked bytes of it and its packed dependencies."""
    unpacked = _decompressed(content, source, limits.unpacked_bytes)
    size = len(unpacked)
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            members = _members(archive, source, limits)
            _check_paths(members, source)
            metadata = _metadata(archive, members, source)
            _check_schemas(archive, members, source)
            dependencies = _packed_dependencies(archive, members)
    except (tarfile.TarError, UnicodeError, ValueError, EOFError):
        raise _not_a_chart(source, "its content is not a tar file") from None
    if dependencies and depth == _DEEPEST:
        raise _not_a_chart(source, "its dependencies are nested too deeply")
    for name, packed in dependencies:
        left = replace(limits, unpacked_bytes=limits.unpacked_bytes - size)
        size += _inspected(packed, f"{source}, {name},", left, depth + 1)[1]
    return metadata, size


def too_large(source: str, what: str, limit: int) -> TooLarge:
    """Return the error for a chart with a part that exceeds its limit in bytes."""
    return TooLarge(f"chart {source} is too large: {what} has more than {limit // MIB} MiB")


def _decompressed(content: bytes, source: str, limit: int) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    try:
        unpacked = decompressor.decompress(content, limit + 1)
    except zlib.error:
        raise _not_a_chart(source, "its content is not gzip") from None
    if len(unpacked) > limit:
        raise too_large(source, "its files together", limit)
    if not decompressor.eof:
        raise _not_a_chart(source, "its archive is truncated")
    if decompressor.unused_data:
        raise _not_a_chart(source, "something follows the end of its archive")
    return unpacked


def _members(archive: tarfile.TarFile, source: str, limits: Limits) -> list[tarfile.TarInfo]:
    members = []
    for member in archive:
        members.append(member)
        if len(members) > limits.files:
            raise TooLarge(f"chart {source} is too large: it has more than {limits.files} files")
    return members


def _check_paths(members: Iterable[tarfile.TarInfo], source: str) -> None:
    for member in members:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name:
            raise _not_a_chart(source, f'it has a file outside of its folder: "{member.name}"')
        if not (member.isfile() or member.isdir()):
            raise _not_a_chart(source, f'"{member.name}" is a link or a device')


def _check_schemas(
    archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo], source: str
) -> None:
    for member in members:
        if PurePosixPath(member.name).name != SCHEMA:
            continue
        file = archive.extractfile(member)
        if file is not None and (problem := schema_problem(file.read())):
            raise _not_a_chart(source, f"{member.name} {problem}")


def _packed_dependencies(
    archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo]
) -> list[tuple[str, bytes]]:
    """Return the archives that Helm may read as dependencies of a chart, with their names.

    Names may occur several times; Helm reads the first.
    """
    found = []
    for member in members:
        path = PurePosixPath(member.name)
        file = archive.extractfile(member)
        if file is not None and path.suffix == _ARCHIVE and path.parent.name == _DEPENDENCIES:
            found.append((member.name, file.read()))
    return found


def _metadata(
    archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo], source: str
) -> JsonObject:
    found = [each for each in members if each.isfile() and _is_metadata(each.name)]
    if len(found) != 1:
        problem = f"it has no {_METADATA}" if not found else f"it has several {_METADATA}"
        raise _not_a_chart(source, f"{problem} in its folder")
    file = archive.extractfile(found[0])
    try:
        value = parse(file.read().decode()) if file else None
    except YamlError as error:
        raise _not_a_chart(source, f"its {_METADATA} is not valid YAML: {error}") from None
    if not isinstance(value, dict):
        raise _not_a_chart(source, f"its {_METADATA} is not a map")
    return value


def _is_metadata(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return len(parts) == 2 and parts[1] == _METADATA


def _not_a_chart(source: str, problem: str) -> NotAChart:
    return NotAChart(f"{source} is not a Helm chart: {problem}; push it with helm push")
