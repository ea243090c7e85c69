"""References to charts in OCI registries, as in the `ociRepository` of an Extension."""

import re
from dataclasses import dataclass
from typing import Final, Self

from pergola.api.ip_ranges import is_address, parse_address
from pergola.api.objects import JsonObject
from pergola.charts.errors import InvalidReference

SCHEME: Final = "oci://"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
)
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PLAIN_SUFFIXES: Final = (".localhost", ".local", ".local.gardener.cloud")


@dataclass(frozen=True, slots=True)
class ChartReference:
    """A chart in a registry.

    Attributes:
        registry: The host, with its port if it has one.
        repository: The path of the chart in the registry.
        tag: Its version, which the registry may move. Empty if only the digest names the chart.
        digest: The digest of its manifest, which takes precedence over the tag.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `[oci://]host[:port]/path[:tag][@sha256:…]`.

        Raises:
            InvalidReference: It has another format, or neither tag nor digest.
        """
        name, at, digest = text.removeprefix(SCHEME).partition("@")
        registry, slash, path = name.partition("/")
        repository, colon, tag = path.partition(":")
        is_host = "." in registry or ":" in registry or registry == "localhost"
        if not (slash and is_host and _HOST.fullmatch(registry)):
            raise InvalidReference(
                f'chart "{text}" has no registry: write host/repository:tag, with the host\'s '
                "domain or port"
            )
        if not _REPOSITORY.fullmatch(repository):
            raise InvalidReference(
                f'chart "{text}" has no valid repository: write host/repository:tag, the '
                "repository in lower case"
            )
        if (colon and not _TAG.fullmatch(tag)) or (at and not is_digest(digest)):
            raise InvalidReference(
                f'chart "{text}" has no valid tag or digest: write host/repository:tag or '
                "host/repository@sha256: with 64 hexadecimal digits"
            )
        if not (tag or digest):
            raise InvalidReference(f'chart "{text}" has no version: add its tag or its digest')
        return cls(registry, repository, tag, digest)

    @classmethod
    def of(cls, source: JsonObject) -> Self:
        """Return the reference of an `ociRepository`: its `ref`, or its parts.

        Raises:
            InvalidReference: It does not name a chart.
        """
        repository, digest, tag = (
            str(source.get(name) or "") for name in ("repository", "digest", "tag")
        )
        version = f"@{digest}" if digest else f":{tag}" if tag else ""
        return cls.parse(str(source.get("ref") or "") or f"{repository}{version}")

    @property
    def version(self) -> str:
        """The digest or, without one, the tag, as used in requests."""
        return self.digest or self.tag

    @property
    def is_local(self) -> bool:
        """Whether the registry is on this machine, or in a local setup without TLS."""
        host = self.registry.rpartition(":")[0] if ":" in self.registry else self.registry
        host = host.strip("[]")
        return host == "localhost" or host.endswith(_PLAIN_SUFFIXES) or _is_loopback(host)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{SCHEME}{self.registry}/{self.repository}{tag}{digest}"


def is_digest(text: str) -> bool:
    """Return whether a text is a digest of the only accepted kind, sha256."""
    return _DIGEST.fullmatch(text) is not None


def _is_loopback(host: str) -> bool:
    return is_address(host) and parse_address(host).is_loopback
