"""The landscape that a reconciliation would build, determined without writing anything.

Existing credentials are read. Those that would be generated are replaced with data from cheap keys,
which exists only in memory.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from pergola.api.objects import JsonObject
from pergola.controllers.references import Reference
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.kube.client import Client
from pergola.operator.reconcile.placeholders import with_referenced
from pergola.operator.reconcile.rehearsal import Rehearsal, Write
from pergola.operator.run.build import Built, open_secrets, with_credentials
from pergola.operator.run.observed import Template, observe
from pergola.pki import KeyAlgorithm
from pergola.runtime.clock import Clock
from pergola.secrets_manager import Certificate, CertificateAuthority, SecretConfig
from pergola.secrets_manager.configs import Inputs, SecretData


class Foreseen(NamedTuple):
    """A landscape with all credentials, as a reconciliation would build it now.

    Attributes:
        missing: Objects that the Garden names but the cluster lacks, replaced with placeholders.
        rehearsal: The client that recorded the writes; its reads reflect them.
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
    """Return the landscape of a Garden without writing anything.

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
    """Return valid data that takes little CPU time."""
    if isinstance(config, CertificateAuthority | Certificate):
        config = replace(config, algorithm=KeyAlgorithm.EC_P256)
    return config.generate(inputs)
