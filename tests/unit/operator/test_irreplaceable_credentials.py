"""Every credential that others rely on is irreplaceable, or has a reason why it is not."""

from collections.abc import Iterator
from typing import Final

from pergola.garden.components.authorities import authorities
from pergola.garden.components.catalog import CATALOG
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.lost_secrets import REPLACEABLE
from tests.support.garden import COMPLETE, landscape

REPLACED_SILENTLY: Final = {
    "ca-garden-runtime": "renewed every month, and trusted by the operator's own objects",
    "ca-virtual-garden-istio-basic-auth-server": "renewed every month, as above",
    "kube-apiserver-static-token": "used by the operator's own probes",
    "observability-ingress": "a password that users read from its Secret",
}


def credentials() -> Iterator[Credential]:
    of = landscape(COMPLETE)
    yield from authorities()
    for component in CATALOG:
        if component.absent(of) is None:
            yield from component.credentials(of)


def test_credentials_that_others_rely_on_are_irreplaceable() -> None:
    relied_on = {
        each.config.name for each in credentials() if each.options.persist or each.config.bundle_key
    }
    irreplaceable = {each.config.name for each in credentials() if each.options.irreplaceable}

    assert irreplaceable == set(REPLACEABLE)
    assert relied_on - irreplaceable == set(REPLACED_SILENTLY)
