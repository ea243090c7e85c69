"""AWS: its services in one region, as one identity.

`AwsClient` asks; `Credentials` say who does. Loading this costs nothing: the library behind it is
loaded with the first call.
"""

from pergola.cloud.aws.client import AwsClient, Observer, unobserved
from pergola.cloud.aws.credentials import Credentials, credentials_of
from pergola.cloud.aws.retry import Pace, Retry

__all__ = [
    "AwsClient",
    "Credentials",
    "Observer",
    "Pace",
    "Retry",
    "credentials_of",
    "unobserved",
]
