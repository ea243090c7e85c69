"""The chapter of `pergola up` about tokens, NetworkPolicies, webhooks and infrastructure."""

from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client


async def show_extensions(
    client: "Client",
    kubeconfig: Path,
    story: "Story",
    stack: AsyncExitStack,
    *,
    has_sandbox: bool,
) -> None:
    """Show each of them, and keep the extension running until the stack ends.

    Args:
        has_sandbox: Whether the API server is a sandbox's, which can reach this process.

    Raises:
        UpError: A step failed, or took too long.
    """
    from pergola.cli.up.tour import show_network_policies, show_token, show_webhooks

    commands = ["pergola tokens", "pergola network-policy explain shop/web"]
    await show_token(client, story)
    await show_network_policies(client, story)
    if has_sandbox:
        await show_webhooks(client, story)
        commands.append(
            "kubectl -n control-plane run plain --image=registry.example/c:1 "
            "--dry-run=server -o yaml"
        )
        commands += await _show_aws(client, story, stack)
    story.try_it(kubeconfig, *commands)


async def _show_aws(client: "Client", story: "Story", stack: AsyncExitStack) -> list[str]:
    """Show the networks, and return commands that show more."""
    if find_spec("moto") is None:
        # moto simulates AWS.
        story.say(r"No networks: they need pip install 'pergola\[testing]'.")
        return []
    from pergola.cli.up.aws import show_aws

    return [await show_aws(client, story, stack)]
