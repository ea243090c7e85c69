"""The password of all hosts of the observability components (spec 20 §10.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.observability.conventions import CREDENTIAL
from pergola.garden.components.removal import removable
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
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
    deploy=task_names.INGRESS_PASSWORD,
    credentials=credentials,
    render=render,
    waits=False,
    removable=removable(),
)
