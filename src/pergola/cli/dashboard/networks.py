"""The network of an Infrastructure as a drawing for the page."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import Key
    from pergola.kube.client import Client


async def draw_network(client: "Client", key: "Key", endpoint_url: str = "") -> str:
    """Draw the current network of an Infrastructure in AWS, as SVG.

    Its Secret is read with the client, and AWS with the credentials in it.

    Args:
        endpoint_url: Of AWS; that of the region by default.

    Raises:
        Unanswered: The network cannot be observed; the text gives the reason.
        KubeError: The API server refused, or did not answer.
    """
    from pergola.cli.aws.subject import AwsCheckError, observed, subject_in
    from pergola.cloud.errors import CloudError
    from pergola.dashboard.server.answers import Unanswered
    from pergola.extension_api.errors import ExtensionError
    from pergola.providers.aws.show import svg, things

    try:
        subject = await subject_in(client, key)
        if subject.credentials is None:
            # This process's own credentials are for its operator, not for everyone who opens the
            # page.
            raise Unanswered(f"Infrastructure {key} names no Secret with credentials")
        async with observed(subject, endpoint_url) as work:
            return svg(things(work.desired, work.snapshot, work.state))
    except (AwsCheckError, CloudError, ExtensionError) as error:
        raise Unanswered(f"the network of Infrastructure {key} cannot be drawn: {error}") from None
