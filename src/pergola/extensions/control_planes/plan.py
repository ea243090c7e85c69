"""The input and the output of a provider's control plane (spec 31 §6)."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import orjson

from pergola.api.objects import JsonObject, map_at
from pergola.api.schema.declare import Value
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.secrets_manager import Generated, Options, SecretConfig

C = TypeVar("C", bound=Value)


class Credential(NamedTuple):
    """A credential that the secrets manager generates, renews and rotates for a control plane."""

    config: SecretConfig
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[C]):
    """The input of rendering: the same plan renders the same bytes.

    Attributes:
        config: the decoded `spec.providerConfig`.
        infrastructure: the `spec.infrastructureProviderStatus`; empty if there is none.
        region: the `spec.region`.
        cluster: with its Shoot, Seed and CloudProfile.
        namespace: of the control plane on the seed; also the technical ID of the Shoot.
        credentials: the Secret that `spec.secretRef` names.
        is_awake: whether controllers run; they do until the API server of a hibernated Shoot is
            gone.
        generated: the credentials of the provider, by name; empty while a plan is only checked.
    """

    config: C
    infrastructure: JsonObject
    region: str
    cluster: Cluster
    shoot: Shoot
    namespace: str
    credentials: JsonObject
    is_awake: bool = True
    generated: Mapping[str, Generated] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> str:
        """The Secret with the kubeconfig for the Shoot that all controllers share."""
        return self.cluster.token_kubeconfig

    def replicas(self, awake: int = 1) -> int:
        """Return `awake` replicas, or none while the Shoot sleeps."""
        return awake if self.is_awake else 0

    def secret_of(self, credential: str) -> str:
        """Return the name of the Secret with a generated credential."""
        return self.generated[credential].current.object_name

    def bundle_of(self, authority: str) -> str:
        """Return the base64 of the certificates that clients of an authority trust."""
        bundle = self.generated[authority].bundle
        if bundle is None:
            raise ValueError(f"{authority} is not an authority")
        return base64.b64encode(bundle.data["bundle.crt"]).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The objects of a control plane, by the ManagedResource that ships them.

    Attributes:
        configuration: objects of the seed that controllers need before they start.
        seed: controllers on the seed.
        shoot: system components, and permissions of controllers in the Shoot.
        definitions: CustomResourceDefinitions of the Shoot, which are deleted first.
        storage_classes: defaults of the Shoot whose annotations are enforced.
    """

    configuration: Sequence[JsonObject] = ()
    seed: Sequence[JsonObject] = ()
    shoot: Sequence[JsonObject] = ()
    definitions: Sequence[JsonObject] = ()
    storage_classes: Sequence[JsonObject] = ()


def data_checksum(obj: JsonObject) -> str:
    """Return the checksum of a Secret's or ConfigMap's data, for annotations of pods.

    It is the SHA-256 of compact JSON with sorted keys, in hexadecimal digits, as in Gardener.
    """
    content = orjson.dumps(map_at(obj, "data"), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()
