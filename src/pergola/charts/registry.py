"""One repository of an OCI registry: its manifests and blobs over HTTP."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from pergola.charts.archive import too_large
from pergola.charts.challenge import Challenge, authorization, refused
from pergola.charts.errors import NotInRegistry, RegistryRefused, RegistryUnreachable
from pergola.charts.pull_secret import Credentials
from pergola.charts.reference import ChartReference

MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DOCKER_HUB: Final = "docker.io"
_DOCKER_HUB_API: Final = "registry-1.docker.io"
_CHUNK: Final = 64 * 1024
_CONNECT_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The settings for accessing a registry.

    Attributes:
        credentials: None for an anonymous client.
        ca_bundle: Certificate authorities for the registry, as PEM, in addition to those of the
            system.
    """

    credentials: Credentials | None = None
    ca_bundle: str = ""


ANONYMOUS: Final = Access()


class Repository:
    """The repository of a chart, for the requests of one pull.

    Args:
        session: Sends the requests; see `open_session`.
        access: The credentials are sent only if the registry requires them.
    """

    def __init__(
        self, session: aiohttp.ClientSession, reference: ChartReference, access: Access
    ) -> None:
        self._session = session
        self._reference = reference
        self._credentials = access.credentials
        self._is_plain = uses_plain_http(reference, access)
        self._authorization = ""

    async def manifest(self, limit: int) -> bytes:
        """Return the manifest of the chart; raises as `blob` does."""
        headers = {"Accept": ", ".join(MANIFEST_TYPES)}
        path = f"manifests/{self._reference.version}"
        return await self._read(path, headers, limit, "the manifest")

    async def blob(self, digest: str, limit: int) -> bytes:
        """Return a blob; the caller verifies its digest.

        Raises:
            NotInRegistry: The blob does not exist in the registry.
            RegistryRefused: The registry refused the request.
            RegistryUnreachable: The registry does not answer.
            TooLarge: It exceeds the limit.
        """
        return await self._read(f"blobs/{digest}", {}, limit, "the archive")

    async def _read(self, path: str, headers: Mapping[str, str], limit: int, what: str) -> bytes:
        try:
            found = await self._request(path, headers, limit, what)
            if found is None:
                found = await self._request(path, headers, limit, what)
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from None
        except (aiohttp.ClientError, OSError) as error:
            raise RegistryUnreachable(
                f"chart {self._reference}: the registry {self._reference.registry} does not "
                f"answer: {error}"
            ) from None
        if found is None:
            raise refused(str(self._reference), self._credentials)
        return found

    async def _request(
        self, path: str, headers: Mapping[str, str], limit: int, what: str
    ) -> bytes | None:
        """Return the content, or None after authenticating, if the registry requires that."""
        given = {"Authorization": self._authorization} if self._authorization else {}
        async with self._session.get(self._url(path), headers={**headers, **given}) as answer:
            if answer.status == 401 and not self._authorization:
                challenge = Challenge.parse(
                    ", ".join(answer.headers.getall("WWW-Authenticate", []))
                )
                self._authorization = await authorization(
                    self._session,
                    challenge,
                    self._credentials,
                    str(self._reference),
                    is_plain=self._is_plain,
                )
                return None
            self._check(answer.status, what)
            content = bytearray()
            async for chunk in answer.content.iter_chunked(_CHUNK):
                content += chunk
                if len(content) > limit:
                    raise too_large(str(self._reference), what, limit)
            return bytes(content)

    def _check(self, status: int, what: str) -> None:
        if status == 200:
            return
        if status == 401:
            raise refused(str(self._reference), self._credentials)
        if status == 404:
            raise NotInRegistry(
                f"chart {self._reference}: the registry does not have {what} (404): correct the "
                "repository, the tag or the digest, or push the chart"
            )
        raise RegistryRefused(
            f"chart {self._reference}: the registry refuses to give {what} ({status}): check the "
            "registry, and what its credentials may read"
        )

    def _untrusted(self, error: aiohttp.ClientSSLError) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"chart {self._reference}: the certificate of the registry is not trusted: {error}; "
            "name a Secret with its authorities in caBundleSecretRef"
        )

    def _url(self, path: str) -> str:
        scheme = "http" if self._is_plain else "https"
        host = self._reference.registry
        host = _DOCKER_HUB_API if host == _DOCKER_HUB else host
        return f"{scheme}://{host}/v2/{self._reference.repository}/{path}"


def uses_plain_http(reference: ChartReference, access: Access) -> bool:
    """Return whether to access a registry without TLS: a local one without a CA bundle."""
    return reference.is_local and not access.ca_bundle


def open_session(reference: ChartReference, access: Access) -> aiohttp.ClientSession:
    """Return a session for the requests of one pull; the caller limits their time.

    Raises:
        RegistryRefused: The CA bundle is not PEM.
    """
    context = ssl.create_default_context()
    if access.ca_bundle:
        try:
            context.load_verify_locations(cadata=access.ca_bundle)
        except ssl.SSLError:
            raise RegistryRefused(
                f"chart {reference}: the CA bundle of the registry has no valid PEM certificates: "
                "correct bundle.crt in the Secret in caBundleSecretRef"
            ) from None
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        auto_decompress=False,
        headers={"User-Agent": "pergola"},
        trust_env=not reference.is_local,
    )
