"""Runs that are postponed while their account is throttled.

A run that waits for AWS would occupy a worker that clusters of other accounts need.
"""

import random
from typing import Final

from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import Throttled
from pergola.extension_api.errors import RequeueAfter

PATIENCE: Final = 10.0
"""The seconds that a run may wait for its first answer."""


def check_turn(aws: AwsClient, source: random.Random) -> None:
    """Check that a run may begin.

    Raises:
        RequeueAfter: the requests of others in the same account must be answered first. The delays
            are spread, so that not all runs come back at once.
    """
    backlog = aws.backlog
    if backlog > PATIENCE:
        cause = Throttled(
            f"AWS is throttling requests of this account in {aws.region}; the run begins later",
            code="RequestLimitExceeded",
        )
        raise RequeueAfter(round(backlog * source.uniform(1.0, 2.0), 1), cause)
