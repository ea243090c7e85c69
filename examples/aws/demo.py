"""The AWS extension at work, on a temporary cluster and an AWS simulated by moto.

    python examples/aws/demo.py

The extension is a process of its own, as it would be in a seed. Speaks to the cluster of
--kubeconfig instead of a new one, if that is given.
"""

import argparse
import asyncio
import base64
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pergola import sandbox
from pergola.api import marks
from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.cli.crds.install import install
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse_documents
from pergola.runtime.logging import configure
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.testing.waiting import until, until_gone

HERE = Path(__file__).parent
FILE = HERE / "pattern-1-created.yaml"
BASTION_FILE = HERE / "bastion.yaml"
KEY = Key("shoot--demo--created", "created")
BASTION_KEY = Key(KEY.namespace, "cli-demo")
PERGOLA = (str(Path(sys.executable).with_name("pergola")),)
RUN = ("extension", "run", "aws")
NO_ENDPOINTS = ("--metrics-bind-address=0", "--health-bind-address=0")
PLAN = ("aws", "plan", "--name", KEY.name, "-n", KEY.namespace)
PATIENCE = 120.0


async def main(kubeconfig: Path | None) -> None:
    """Start a cluster if none is given, an AWS, and the extension between them."""
    configure("error", "text")
    async with AsyncExitStack() as stack:
        if kubeconfig is None:
            own = await sandbox.start("aws", progress=print)
            stack.push_async_callback(own.stop)
            kubeconfig = own.kubeconfig
        server = stack.enter_context(moto())
        aws = await stack.enter_async_context(CorrectedAws(server))
        environment = {"KUBECONFIG": str(kubeconfig), "AWS_ENDPOINT_URL": aws.url}
        client = await stack.enter_async_context(Client.connect(load(kubeconfig)))
        await install(client)
        async with extension(environment):
            await show(client, environment)


async def show(client: Client, environment: dict[str, str]) -> None:
    """Run the five steps of the README."""
    await prepare(client)
    print("\n1. pergola aws plan: nothing is there yet")
    await plan(environment)

    print("\n2. The Infrastructure is asked for:")
    await ask(client, INFRASTRUCTURE, KEY)
    done = await finished(client, INFRASTRUCTURE, KEY)
    print(dump({"status": reported(done)}), end="")

    print("\n3. A Bastion is asked for, and deleted:")
    await apply(client, BASTION_FILE.read_bytes())
    await ask(client, BASTION, BASTION_KEY)
    done = await finished(client, BASTION, BASTION_KEY)
    print(dump({"status": {"ingress": done["status"]["ingress"]}}), end="")
    await client.delete(BASTION, BASTION_KEY)

    print("\n4. pergola aws plan: all of it is kept")
    await plan(environment, "--all")
    await until_gone(client, BASTION, BASTION_KEY, patience=PATIENCE)

    print("\n5. kubectl delete infrastructure:")
    await client.patch(
        INFRASTRUCTURE, KEY, {"metadata": {"annotations": {marks.CONFIRMATION_DELETION: "true"}}}
    )
    await client.delete(INFRASTRUCTURE, KEY)
    await until_gone(client, INFRASTRUCTURE, KEY, patience=PATIENCE)
    print("   everything is removed from AWS, and then the Infrastructure is gone")


async def prepare(client: Client) -> None:
    """Create the prerequisites: manifests, credentials, a public key."""
    await apply(client, FILE.read_bytes())
    await client.apply(credentials(), manager="demo", force=True)
    generated = rsa.generate_private_key(65537, 2048).public_key()
    text = generated.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    key = base64.b64encode(text).decode()
    await client.patch(INFRASTRUCTURE, KEY, {"spec": {"sshPublicKey": key}})


async def apply(client: Client, text: bytes) -> None:
    """Apply all documents of a manifest."""
    for document in parse_documents(text):
        if isinstance(document.value, dict):
            await client.apply(document.value, manager="demo", force=True)


async def ask(client: Client, gvk: GroupVersionKind, key: Key) -> None:
    """Request an operation as a caller does, by annotations."""
    now = datetime.now(UTC).isoformat()
    annotations = {marks.OPERATION: marks.OPERATION_RECONCILE, marks.TIMESTAMP: now}
    await client.patch(gvk, key, {"metadata": {"annotations": annotations}})


async def finished(client: Client, gvk: GroupVersionKind, key: Key) -> JsonObject:
    """Wait until the resource is created."""
    return await until(
        client,
        gvk,
        key,
        lambda obj: map_at(obj, "status", "lastOperation").get("state") == "Succeeded",
        patience=PATIENCE,
    )


def credentials() -> JsonObject:
    """Return credentials, which moto does not check."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cloudprovider", "namespace": KEY.namespace},
        "stringData": {"accessKeyID": "anybody", "secretAccessKey": "anything"},
    }


def reported(obj: JsonObject) -> JsonObject:
    """Return the part of the status that other components read."""
    status = map_at(obj, "status")
    return {name: status[name] for name in ("providerStatus", "egressCIDRs", "networking")}


@asynccontextmanager
async def extension(environment: dict[str, str]) -> AsyncIterator[None]:
    """Run the extension as a process until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *PERGOLA, *RUN, *NO_ENDPOINTS, env={**os.environ, **environment}, stderr=DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def plan(environment: dict[str, str], *options: str) -> None:
    """Print the output of `pergola aws plan`."""
    process = await asyncio.create_subprocess_exec(
        *PERGOLA, *PLAN, *options, env={**os.environ, **environment}, stdout=PIPE
    )
    printed, _ = await process.communicate()
    print(printed.decode(), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path)
    asyncio.run(main(parser.parse_args().kubeconfig))
