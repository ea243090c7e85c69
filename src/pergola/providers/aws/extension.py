"""The extension `aws`: every kind of extension resource that Pergola serves in AWS."""

from typing import Final

from pergola.extensions.actuator import Actuator
from pergola.providers.aws.actuator import AwsInfrastructure
from pergola.providers.aws.bastion import AwsBastion

ACTUATORS: Final[tuple[type[Actuator], ...]] = (AwsInfrastructure, AwsBastion)
