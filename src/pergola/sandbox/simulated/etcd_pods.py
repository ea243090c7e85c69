"""Labels, data and TLS files, which the pods of an etcd and of its backups have in common."""

from dataclasses import dataclass
from typing import ClassVar, Final

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.manifests import mount

DATA: Final = "/var/etcd/data"

_TLS: Final = "/var/etcd/ssl/client"


def pod_labels(etcd: JsonObject) -> dict[str, str]:
    """Return the labels by which the Service for clients selects pods."""
    return {
        **map_at(etcd, "spec", "selector", "matchLabels"),
        "app.kubernetes.io/part-of": name_of(etcd),
    }


def volume_claim(etcd: JsonObject) -> str:
    """Return the name of the template of the claim of an etcd's data."""
    return map_at(etcd, "spec").get("volumeClaimTemplate") or name_of(etcd)


def data_claim(etcd: JsonObject) -> str:
    """Return the name of the claim of an etcd's data."""
    return f"{volume_claim(etcd)}-{name_of(etcd)}-0"


@dataclass(frozen=True)
class TlsFiles:
    """The files of a server's certificate and of the authority of its clients.

    Attributes:
        settings: Of an `Etcd`; empty without TLS.
    """

    settings: JsonObject

    certificate: ClassVar[str] = f"{_TLS}/server/tls.crt"
    key: ClassVar[str] = f"{_TLS}/server/tls.key"

    @property
    def authority(self) -> str:
        """The path of the bundle."""
        bundle = map_at(self.settings, "tlsCASecretRef").get("dataKey", "ca.crt")
        return f"{_TLS}/ca/{bundle}"

    def volumes(self) -> list[JsonObject]:
        """Return the volumes of the pod."""
        return [
            {"name": name, "secret": {"secretName": secret}}
            for name, secret in self._secrets().items()
        ]

    def mounts(self) -> list[JsonObject]:
        """Return the mounts of the container."""
        return [mount(name, f"{_TLS}/{name}") for name in self._secrets()]

    def _secrets(self) -> dict[str, str]:
        fields = {"server": "serverTLSSecretRef", "ca": "tlsCASecretRef"}
        if not self.settings:
            return {}
        return {name: str(self.settings[field]["name"]) for name, field in fields.items()}
