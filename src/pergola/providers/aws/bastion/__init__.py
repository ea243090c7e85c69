"""Bastions in AWS: hosts through which people reach nodes by SSH (spec 30 §10.1).

actuator  the Bastion as an extension resource
site      where it can be placed: by the Infrastructure's status, never by names of resources
machine   what it runs on: machine type and image of the CloudProfile
firewall  who may reach it, and what it may reach
host      its instance
"""

from pergola.providers.aws.bastion.actuator import AwsBastion

__all__ = ["AwsBastion"]
