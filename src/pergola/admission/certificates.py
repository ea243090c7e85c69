"""The server's certificate, reloaded when its files change (spec 12 §1.1)."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import CertificateMetrics

log = get_logger("certificates")

CHECK_SECONDS: Final = 5.0
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"

_Stamp = tuple[tuple[int, int, int], ...]


class ServingError(Exception):
    """The webhooks cannot be served; the text names the file or object, and the reason."""


class Certificates:
    """A server's TLS settings, from `tls.crt` and `tls.key` in a directory.

    Args:
        client_ca: only clients with a certificate of this authority may connect; None for all.

    Attributes:
        context: for new connections; replaced when the files change.

    Raises:
        ServingError: A file is missing or cannot be used.
    """

    context: ssl.SSLContext

    def __init__(
        self, directory: Path, metrics: CertificateMetrics, client_ca: Path | None = None
    ) -> None:
        self._directory = directory
        self._metrics = metrics
        self._client_ca = client_ca
        try:
            self._stamp = self._stamped()
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise ServingError(self._explained(error)) from None

    async def watch(self) -> None:
        """Reload the files whenever they change, until cancelled.

        The files are polled: events for mounted Secrets, which are replaced as a whole directory,
        differ between systems.
        """
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.observe()

    def observe(self) -> None:
        """Reload the files if they changed; keep the old ones if the new ones are broken."""
        try:
            stamp = self._stamped()
            if stamp == self._stamp:
                return
            self._load()
        except (OSError, ssl.SSLError, ServingError) as error:
            self._metrics.failed()
            log.error("certificate not read", error=self._explained(error))
            return
        self._stamp = stamp
        log.info("certificate read", directory=str(self._directory))

    def _load(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._directory / _CERTIFICATE, self._directory / _KEY)
        if self._client_ca is not None:
            self._load_client_ca(context, self._client_ca)
        self.context = context
        self._metrics.read()

    def _load_client_ca(self, context: ssl.SSLContext, file: Path) -> None:
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            raise ServingError(f"{file} does not contain a PEM certificate") from None
        context.verify_mode = ssl.CERT_REQUIRED

    def _stamped(self) -> _Stamp:
        files = [self._directory / _CERTIFICATE, self._directory / _KEY]
        if self._client_ca is not None:
            files.append(self._client_ca)
        found = [file.stat() for file in files]
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in found)

    def _explained(self, error: Exception) -> str:
        if isinstance(error, FileNotFoundError):
            return f"{error.filename} does not exist; webhooks cannot be served without it"
        if isinstance(error, ssl.SSLError):
            pair = f"{_CERTIFICATE} and {_KEY} in {self._directory}"
            return f"cannot serve with {pair}: {error.reason or error}"
        if isinstance(error, ServingError):
            return str(error)
        return f"cannot read the certificate in {self._directory}: {error}"
