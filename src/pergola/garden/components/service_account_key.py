"""The key that signs the tokens of ServiceAccounts of the virtual cluster (spec 20 §10.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.lost_secrets import given_up_in, published
from pergola.garden.landscape.phases import COMPLETING, phase_of
from pergola.secrets_manager import Options, Rotate, RsaKey

NAME: Final = "service-account-key"
"""The credential with the key; its bundle also verifies tokens that the previous key signed."""


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the key; the previous one stays until its rotation is completed."""
    phase = phase_of(landscape.rotation.service_account_key)
    options = Options(
        persist=True,
        rotate=Rotate.KEEP_OLD,
        ignore_old=phase == COMPLETING,
        irreplaceable=published(
            "sign tokens that the virtual cluster accepts", phase, given_up_in(landscape)
        ),
    )
    yield Credential(RsaKey(name=NAME), options)
