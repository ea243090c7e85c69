"""`pergola webhooks`: the commands."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.output import ReportOutput
from pergola.cli.text import say

Site = Annotated[
    Literal["runtime", "target"] | None,
    Parameter(
        help="`runtime`: the cluster that the resource manager runs in. `target`: another cluster, "
        "such as a shoot. By default as in the configuration."
    ),
]
Namespace = Annotated[str | None, Parameter(alias="-n")]
Garden = Annotated[bool, Parameter(negative="")]

app: Final = App(
    name="webhooks",
    help="Print, apply or check the registration of the resource manager's webhooks.",
)


@app.command
def render(
    *,
    config: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: Namespace = None,
    url: str | None = None,
    ca: Path | None = None,
    hvpa: Annotated[bool, Parameter(negative="")] = False,
    garden: Garden = False,
) -> None:
    """Print the webhook configurations as YAML for `kubectl apply -f -`.

    They are built from the declarations that the server serves.

    Parameters
    ----------
    config
        Configuration file of the resource manager; only enabled webhooks are registered.
    prefix
        Prefix of the names of the Service and the configurations.
    namespace
        Namespace of the Service.
    url
        URL through which API servers reach the server; a Service by default.
    ca
        PEM file with the certificates that API servers have to trust.
    hvpa
        Register high-availability-config for Hvpas (autoscaling.k8s.io/v1alpha1) too.
    garden
        The cluster is the runtime cluster of a garden.
    """
    from pergola.cli.configuration import read_settings
    from pergola.cli.webhooks.registration import configurations, installation_for, read_ca
    from pergola.kube.yaml import dump

    settings = read_settings(config)
    place = installation_for(settings, installation, prefix, namespace, hvpa=hvpa, garden=garden)
    bundle = read_ca(ca) if ca else b""
    for obj in configurations(settings, place, url, bundle):
        say(f"---\n{dump(obj)}", end="")


@app.command
def apply(
    *,
    config: Path,
    ca: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: Namespace = None,
    url: str | None = None,
    garden: Garden = False,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Register the webhooks in a cluster, or update their registration.

    A resource manager with `server.webhooks.selfSigned` does this itself, and renews its
    certificates.

    Parameters
    ----------
    config
        Configuration file of the resource manager; only enabled webhooks are registered.
    ca
        PEM file with the certificates that API servers have to trust.
    prefix
        Prefix of the names of the Service and the configurations.
    namespace
        Namespace of the Service.
    url
        URL through which API servers reach the server; a Service by default.
    garden
        The cluster is the runtime cluster of a garden.
    """
    from pergola.cli.configuration import read_settings
    from pergola.cli.webhooks.registration import (
        as_served,
        configurations,
        installation_for,
        read_ca,
        register,
    )

    settings = read_settings(config)
    place = installation_for(settings, installation, prefix, namespace, garden=garden)
    bundle = read_ca(ca)

    async def main() -> None:
        async with cluster.connect() as client:
            served = await as_served(client, place)
            for obj in configurations(settings, served, url, bundle):
                say(await register(client, obj))

    asyncio.run(main())


@app.command
def check(
    *,
    config: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: Namespace = None,
    url: str | None = None,
    garden: Garden = False,
    address: str | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Check the registration of webhooks in a cluster, and whether they are served.

    Reports webhooks that block the installation's own start, are registered but not served, served
    but not registered, or have an expired certificate. Exits with 1 if there are errors.

    Parameters
    ----------
    config
        Configuration file of the resource manager.
    prefix
        Prefix of the names of the Service and the configurations.
    namespace
        Namespace of the Service.
    url
        URL through which API servers reach the server; a Service by default.
    garden
        The cluster is the runtime cluster of a garden.
    address
        HOST:PORT of a server whose paths and certificate to check; by default the URL's.
    """
    from pergola.cli.configuration import read_settings
    from pergola.cli.webhooks.checking import Question, findings, print_findings
    from pergola.cli.webhooks.registration import installation_for

    settings = read_settings(config)
    place = installation_for(settings, installation, prefix, namespace, garden=garden)
    question = Question(settings, place, url, address)
    found = asyncio.run(findings(cluster.config(), question))
    print_findings(found, output)
    if any(finding.severity == "error" for finding in found):
        sys.exit(1)
