"""Shared steps of internet gateways and egress-only internet gateways, one of each per VPC."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.resources.step import Work

Gateways = Mapping[str, JsonObject]


class ExistingGateway(NamedTuple):
    """The gateway that a user-provided VPC must have.

    Attributes:
        state_key: The key of its id in the state.
        gateways: Returns all gateways of the kind, by id.
        problem: The text about a missing gateway; `{vpc}` is the id of the VPC.
    """

    state_key: str
    gateways: Callable[[Work], Gateways]
    problem: str

    def plan(self, work: Work) -> Note:
        """Return a note with the id of the gateway, or with the problem if it is missing."""
        return Note(Fate.KEEP, self._find(work) or self._missing(work))

    async def ensure(self, work: Work) -> None:
        """Record the gateway.

        Raises:
            ExtensionError: The VPC has none.
        """
        name = self._find(work)
        if name is None:
            raise ExtensionError(self._missing(work), Code.CONFIGURATION_PROBLEM)
        work.state.set(self.state_key, name)

    def _find(self, work: Work) -> str | None:
        vpc = work.desired.config.networks.vpc.id
        gateways = self.gateways(work).items()
        return next((name for name, gateway in gateways if is_attached(gateway, vpc)), None)

    def _missing(self, work: Work) -> str:
        return self.problem.format(vpc=work.desired.config.networks.vpc.id)


def is_attached(gateway: JsonObject, vpc: str | None) -> bool:
    """Return whether a gateway is attached to a VPC, or about to be."""
    return any(each.get("VpcId") == vpc for each in gateway.get("Attachments") or [])
