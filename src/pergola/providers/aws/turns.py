"""Runs that come back later while their account is throttled.

A run that waited for AWS would keep a worker from the clusters of other accounts.
"""

import random
from typing import Final

from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import Throttled
from pergola.extension_api.errors import RequeueAfter

PATIENCE: Final = 10.0
"""Seconds for which a run may wait for its first answer."""


def check_turn(aws: AwsClient, source: random.Random) -> None:
    """Check that a run can begin.

    Raises:
        RequeueAfter: the requests of others in the same account have to be answered first. The
            times are spread, so that not all of them come back at once.
    """
    backlog = aws.backlog
    if backlog > PATIENCE:
        cause = Throttled(
            f"AWS is throttling requests of this account in {aws.region}; the run begins later",
            code="RequestLimitExceeded",
        )
        raise RequeueAfter(round(backlog * source.uniform(1.0, 2.0), 1), cause)
