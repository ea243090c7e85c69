"""The certificate that a server shows, read again when its files change (spec 12 §1.1)."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import CertificateMetrics

log = get_logger("certificates")

LOOK_SECONDS: Final = 5.0
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"

_Stamp = tuple[tuple[int, int, int], ...]


class ServingError(Exception):
    """The certificate cannot be served; the text says which file, and why."""


class Certificates:
    """A server's TLS settings, with the pair of `tls.crt` and `tls.key` in a directory.

    Raises:
        ServingError: the pair is missing, or cannot be used.
    """

    def __init__(self, directory: Path, metrics: CertificateMetrics) -> None:
        self._directory = directory
        self._metrics = metrics
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        try:
            self._stamp = self._stamped()
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise ServingError(self._explained(error)) from None

    async def watch(self) -> None:
        """Reads the pair again whenever it changes; until cancelled.

        Mounted Secrets are exchanged as a whole directory, which file events tell differently on
        every system: the files are looked at instead.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Reads the pair again if it has changed; the old one stays where the new one is broken."""
        try:
            stamp = self._stamped()
            if stamp == self._stamp:
                return
            self._load()
        except (OSError, ssl.SSLError) as error:
            self._metrics.failed()
            log.error("certificate not read", error=self._explained(error))
            return
        self._stamp = stamp
        log.info("certificate read", directory=str(self._directory))

    def _load(self) -> None:
        certificate, key = self._directory / _CERTIFICATE, self._directory / _KEY
        # A pair that does not fit together would spoil the one that is served: try it first.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        self.context.load_cert_chain(certificate, key)
        self._metrics.read()

    def _stamped(self) -> _Stamp:
        found = [(self._directory / name).stat() for name in (_CERTIFICATE, _KEY)]
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in found)

    def _explained(self, error: OSError | ssl.SSLError) -> str:
        if isinstance(error, FileNotFoundError):
            return (
                f"{error.filename} does not exist; it must hold what the webhooks are served with"
            )
        if isinstance(error, ssl.SSLError):
            pair = f"{_CERTIFICATE} and {_KEY} in {self._directory}"
            return f"{pair} are no certificate and its key: {error.reason or error}"
        return f"cannot read the certificate in {self._directory}: {error}"
