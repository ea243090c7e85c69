"""Internet gateways and egress-only internet gateways of user-provided VPCs, one of each."""

from typing import NamedTuple

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.step import Work


class ExistingGateway(NamedTuple):
    """The gateway that a user-provided VPC must have.

    Attributes:
        ours: The one that a managed VPC has.
        problem: The text about a missing gateway; `{vpc}` is the id of the VPC.
    """

    ours: Ours
    problem: str

    def decide(self, work: Work) -> Decision:
        """Record the gateway; refuse if the VPC has none."""
        vpc = work.desired.config.networks.vpc.id
        for name, gateway in self.ours.all(work).items():
            if is_attached(gateway, vpc):
                return Decision.keep(name, {self.ours.key: name})
        text = self.problem.format(vpc=vpc)
        return Decision.refuse(ExtensionError(text, Code.CONFIGURATION_PROBLEM))


def is_attached(gateway: JsonObject, vpc: str | None) -> bool:
    """Return whether a gateway is attached to a VPC, or about to be."""
    return any(each.get("VpcId") == vpc for each in gateway.get("Attachments") or [])
