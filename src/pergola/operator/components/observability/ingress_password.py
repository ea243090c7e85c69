"""The password of all hosts of the observability components (spec 20 §10.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.operator.components.component import Component, Rendered
from pergola.operator.components.observability.conventions import CREDENTIAL, CREDENTIAL_TASK
from pergola.operator.components.removal import removable
from pergola.operator.garden.credentials import Credential
from pergola.operator.garden.landscape import Landscape
from pergola.secrets_manager import BasicAuth, Options


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the password; it changes when the observability credentials are rotated."""
    del landscape
    yield Credential(BasicAuth(CREDENTIAL), Options(persist=True))


def render(landscape: Landscape) -> Rendered:
    """Return no objects: the secrets manager maintains the Secret."""
    del landscape
    return Rendered()


INGRESS_PASSWORD: Final = Component(
    name=CREDENTIAL,
    deploy=CREDENTIAL_TASK,
    credentials=credentials,
    render=render,
    waits=False,
    removable=removable(),
)
