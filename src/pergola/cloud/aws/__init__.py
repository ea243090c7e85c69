"""AWS's services in one region, with one identity.

`AwsClient` sends requests; `AwsClients` is a process's pool of them, by Secret and region; `Quotas`
keeps their rates below the limits of an AWS account; `network` derives facts about networks from
AWS's answers. botocore is loaded with the first request, so importing this is cheap.
"""

from pergola.cloud.aws.client import AwsClient, Observer, unobserved
from pergola.cloud.aws.clients import AwsClients, Place
from pergola.cloud.aws.credentials import Credentials, credentials_of
from pergola.cloud.aws.quotas import Quotas
from pergola.cloud.aws.reading import Read, reader
from pergola.cloud.aws.retry import Retry

__all__ = [
    "AwsClient",
    "AwsClients",
    "Credentials",
    "Observer",
    "Place",
    "Quotas",
    "Read",
    "Retry",
    "credentials_of",
    "reader",
    "unobserved",
]
