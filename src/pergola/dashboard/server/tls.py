"""TLS settings of a listener whose certificate may change while it listens."""

import ssl

from pergola.admission.certificates import Certificates


def reloading(certificates: Certificates) -> ssl.SSLContext:
    """Return settings that give each new connection the current certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def choose(connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        connection.context = certificates.context

    context.sni_callback = choose
    return context
