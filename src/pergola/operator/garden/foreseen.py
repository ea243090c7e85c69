"""The landscape that a reconciliation would build, without writing anything.

Credentials that the cluster has are read. Those that would be generated get data of cheap keys,
which exists in memory only.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from pergola.api.objects import JsonObject
from pergola.controllers.references import Reference
from pergola.kube.client import Client
from pergola.operator.components.catalog import CATALOG
from pergola.operator.components.component import Component
from pergola.operator.garden.build import Built, open_secrets, with_credentials
from pergola.operator.garden.observed import Template, observe
from pergola.operator.garden.placeholders import with_referenced
from pergola.operator.garden.rehearsal import Rehearsal, Write
from pergola.pki import KeyAlgorithm
from pergola.runtime.clock import Clock
from pergola.secrets_manager import Certificate, CertificateAuthority, SecretConfig
from pergola.secrets_manager.configs import Inputs, SecretData


class Foreseen(NamedTuple):
    """A landscape with all credentials, as a reconciliation would build it now.

    Attributes:
        missing: What the Garden names but the cluster does not have; placeholders take its place.
        rehearsal: The client that saw the writes; it reads the cluster as they leave it.
        credentials: The writes of the secrets manager: Secrets that would be created or repaired.
    """

    built: Built
    missing: tuple[Reference, ...]
    rehearsal: Rehearsal
    credentials: tuple[Write, ...]


async def foresee(
    client: Client,
    garden: JsonObject,
    template: Template,
    clock: Clock,
    components: Iterable[Component] = CATALOG,
) -> Foreseen:
    """Return the landscape of a Garden; nothing is written.

    Raises:
        Malformed: The Garden has values of wrong types.
        OperatorError: The cluster has several wildcard certificates.
        SecretsManagerError: A credential cannot be adopted.
        KubeError: The API server refused, or did not answer.
    """
    rehearsal = Rehearsal(client)
    rehearsal.assume(garden)
    observed = await observe(rehearsal, garden, template)
    landscape = with_referenced(observed.landscape)
    secrets = await open_secrets(rehearsal, landscape, clock, generate=_cheap)
    built = Built(await with_credentials(landscape, secrets, components), secrets)
    return Foreseen(built, observed.missing, rehearsal, tuple(rehearsal.taken()))


def _cheap(config: SecretConfig, inputs: Inputs) -> SecretData:
    """Return data that is valid, and takes little CPU time."""
    if isinstance(config, CertificateAuthority | Certificate):
        config = replace(config, algorithm=KeyAlgorithm.EC_P256)
    return config.generate(inputs)
