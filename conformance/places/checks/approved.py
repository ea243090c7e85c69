"""Checks of the certificates that are approved."""

from typing import Final

from conformance.places.checks.certificates import (
    CLIENT,
    KUBELET_SERVING,
    add_node,
    agent,
    kubelet,
    request,
)
from conformance.places.place import Check, Site

_KUBELET: Final = "of-kubelet"
_AGENT: Final = "of-agent"


async def _kubelet(site: Site) -> None:
    await add_node(site, _KUBELET)
    decision = await request(site, "serving", KUBELET_SERVING, kubelet(_KUBELET), [_KUBELET])
    assert decision == "Approved", f"the certificate of a kubelet is {decision}"


async def _agent(site: Site) -> None:
    await add_node(site, _AGENT)
    decision = await request(site, "client", CLIENT, agent(_AGENT))
    assert decision == "Approved", f"the certificate of a node agent is {decision}"


KUBELETS: Final = Check("approved", "the serving certificate of a kubelet", _kubelet)
AGENTS: Final = Check("approved", "the client certificate of a node agent", _agent)
