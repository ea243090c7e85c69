"""`pergola operator` as a child of `pergola up`, with exactly the permissions of its chart."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.cli.up.story import UpError
from pergola.kube.child_process import send

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client
    from pergola.sandbox.simulated import Site

_MANAGER: Final = "pergola-up"
_NAMESPACE: Final = "garden"
_ACCOUNT: Final = "gardener-operator"
_PERMISSIONS: Final = (
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)
_LOOPBACK: Final = {"bindAddress": "127.0.0.1", "port": 0}
_GRACE: Final = 20.0  # seconds; the operator itself ends sooner
_SHOWN: Final = 5  # lines
_WEEK: Final = 7 * 24 * 3600  # seconds


@asynccontextmanager
async def operator_process(
    site: "Site", environment: Mapping[str, str] | None = None
) -> AsyncGenerator[None]:
    """Run the operator on a site until the block ends.

    Args:
        environment: Its variables in place of the site's.

    Raises:
        UpError: It ended before; the text has its last lines.
    """
    from pergola.runtime.task_group import TaskGroup
    from pergola.sandbox.processes import die_with

    line, variables = await operator_command(site, environment)
    parent = os.getpid()
    log = site.directory / "operator.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *line,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=variables,
            start_new_session=True,  # Ctrl-C is for this process, which ends the other one
            preexec_fn=lambda: die_with(parent),
        )
    try:
        async with TaskGroup() as group:
            watching = group.create_task(_fail_at_its_end(process, log))
            yield
            watching.cancel()
    finally:
        await _end(process)


async def operator_command(
    site: "Site", environment: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Install what the operator needs on a site; return its command line and variables."""
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write

    kubeconfig = await _install(site)
    config = write(site.directory / "operator.yaml", dump(_configuration(kubeconfig)))
    program = Path(sys.executable).with_name("pergola")
    given = site.operator_environment if environment is None else environment
    line = [str(program), "operator", "--config", str(config)]
    return line, {**os.environ, **_through(site), **given}


def _through(site: "Site") -> dict[str, str]:
    """Return the variables with which the operator reaches Services of the site."""
    return {"HTTPS_PROXY": site.node.proxy, "NO_PROXY": "127.0.0.1,localhost"}


def _configuration(kubeconfig: Path) -> "JsonObject":
    from pergola.api.operator_config import API_VERSION, KIND

    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "runtimeClientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "server": dict.fromkeys(("webhooks", "healthProbes", "metrics"), _LOOPBACK),
        "controllers": {
            "networkPolicy": {"concurrentSyncs": 5},
            "vpaEvictionRequirements": {"concurrentSyncs": 5},
        },
    }


async def _install(site: "Site") -> Path:
    """Apply the kinds and permissions of the operator's chart; return its own kubeconfig."""
    from pergola.cli.crds.install import install
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write
    from pergola.sandbox.helm import render
    from pergola.sandbox.images.pergola import PergolaImage
    from pergola.shipped import CHARTS

    values = {"image": {"repository": PergolaImage.repository}}
    rendered = await asyncio.to_thread(render, CHARTS / "operator", values)
    await install(
        site.client, [obj for obj in rendered if obj["kind"] == "CustomResourceDefinition"]
    )
    for kind in _PERMISSIONS:
        for obj in rendered:
            if obj["kind"] == kind:
                await site.client.apply(obj, manager=_MANAGER, force=True)
    token = await _token(site.client)
    document = _with_token(site.sandbox.kubeconfig, token)
    return write(site.directory / "operator.kubeconfig", dump(document))


async def _token(client: "Client") -> str:
    """Return a token of the operator's ServiceAccount, valid for a week."""
    from pergola.api.kinds import SERVICE_ACCOUNT
    from pergola.api.objects import Key

    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _WEEK},
    }
    key = Key(_NAMESPACE, _ACCOUNT)
    answer = await client.create_subresource(SERVICE_ACCOUNT, key, "token", request)
    return str(answer["status"]["token"])


def _with_token(admin: Path, token: str) -> "JsonObject":
    """Return the kubeconfig of an administrator with a token in place of credentials."""
    from pergola.api.objects import maps_at
    from pergola.kube.yaml import parse

    document = parse(admin.read_text())
    if not isinstance(document, dict):
        raise UpError(f"{admin} is not a kubeconfig")
    users = [{**user, "user": {"token": token}} for user in maps_at(document, "users")]
    return {**document, "users": list(users)}


async def _fail_at_its_end(process: "Process", log: Path) -> None:
    code = await process.wait()
    text = await asyncio.to_thread(log.read_text, errors="replace")
    lines = text.splitlines()[-_SHOWN:]
    raise UpError(
        "\n".join((f"pergola operator ended with code {code}, after these lines:", *lines))
    )


async def _end(process: "Process") -> None:
    """Ask the operator to end, and kill it if it does not."""
    if process.returncode is not None:
        return
    send(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _GRACE)
    except TimeoutError:
        send(process, signal.SIGKILL)
        await process.wait()
