"""An account of a reader in AWS, with a network for the manifest of pattern 2.

    python aws_account.py

Runs in the folder with the unpacked examples, writes the ids of the network into the manifest, and
the variables that lead to the account into `account.env`.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.aws.world import RANGE, Network

MANIFEST: Final = Path("examples/aws/pattern-2-byo.yaml")
VARIABLES: Final = (
    "export AWS_ENDPOINT_URL={url} AWS_REGION=eu-west-1 "
    "AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n"
)


async def main() -> None:
    """Serve until the process is ended."""
    with moto() as server:
        async with CorrectedAws(server) as aws, aws.client("eu-west-1") as client:
            network = await Network.complete(client, zones=("a", "b"))
            roles = (network.workers, network.internal, network.public)
            ids = iter(
                (
                    network.id,
                    await network.security_group(),
                    *(subnets[zone] for zone in ("a", "b") for subnets in roles),
                )
            )
            write(ids, aws.url)
            await asyncio.Event().wait()


def write(ids: Iterator[str], url: str) -> None:
    """Write the ids of a network, in the order of the manifest, and the variables."""
    text = MANIFEST.read_text()
    text = re.sub(r"(vpc|sg|subnet)-0[0-9a-f]{16}\b", lambda _: next(ids), text)
    text = text.replace("10.250.0.0/16", RANGE)
    MANIFEST.write_text(text)
    Path(MANIFEST.name).write_text(text)
    Path("account.env").write_text(VARIABLES.format(url=url))


if __name__ == "__main__":
    asyncio.run(main())
