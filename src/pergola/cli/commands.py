"""The commands of `pergola`: where each is, and what it does in one sentence.

A command line imports the command that it names, and no other; the overview imports none.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from cyclopts import App, Parameter

from pergola import __version__


class Command(NamedTuple):
    """A command.

    Attributes:
        target: Its function or application, as `module:name`.
        summary: The first sentence of its help.
    """

    target: str
    summary: str


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "up": Command(
            "pergola.cli.up.command:up",
            "Start real clusters and show Pergola at work in them, in five chapters.",
        ),
        "unpack": Command(
            "pergola.cli.unpack:unpack",
            "Write the examples, Helm charts and documentation of this version into folders.",
        ),
        "new": Command(
            "pergola.cli.new:new",
            "Begin a project: a controller with a kind of its own, a webhook, or a "
            "network extension.",
        ),
        "sandbox": Command(
            "pergola.cli.sandbox:app",
            "Run a real Kubernetes control plane on this machine, without root or containers.",
        ),
        "resource-manager": Command(
            "pergola.cli.resource_manager:resource_manager",
            "Keep objects in a cluster as ManagedResources describe them.",
        ),
        "operator": Command(
            "pergola.cli.operator:operator",
            "Keep a garden as its Garden describes it: the virtual cluster, "
            "Gardener, and what they need.",
        ),
        "dashboard": Command(
            "pergola.cli.dashboard.command:dashboard",
            "Serve a live page over a cluster: what needs attention, since when, and why.",
        ),
        "dashboard-server": Command(
            "pergola.cli.dashboard.server:dashboard_server",
            "Serve the page of the dashboard to the users of a cluster, over TLS only.",
        ),
        "crds": Command(
            "pergola.cli.crds.app:app",
            "Print CustomResourceDefinitions, or install them in a cluster.",
        ),
        "garbage": Command(
            "pergola.cli.garbage:garbage",
            "Print the immutable ConfigMaps and Secrets that nothing references, "
            "and delete nothing.",
        ),
        "tokens": Command(
            "pergola.cli.tokens:tokens",
            "Print all requested tokens: owner, age, next renewal and last error.",
        ),
        "aws": Command(
            "pergola.cli.aws.app:app",
            "Inspect, check and plan the infrastructure of clusters in AWS.",
        ),
        "garden": Command(
            "pergola.cli.garden.app:app",
            "Check, plan, compare, follow, rotate and move a Garden, and reach its "
            "virtual cluster.",
        ),
        "network": Command(
            "pergola.cli.network.app:app",
            "Request Networks from their extensions, and follow the progress.",
        ),
        "network-policy": Command(
            "pergola.cli.network_policy.app:app",
            "Explain the NetworkPolicies that are generated for Services.",
        ),
        "webhooks": Command(
            "pergola.cli.webhooks.app:app",
            "Print, apply or check the registration of the resource manager's webhooks.",
        ),
        "why": Command(
            "pergola.cli.why.command:why",
            "Explain why an object is as it is; without an object, list what needs attention.",
        ),
        "explain": Command(
            "pergola.cli.explain.command:explain",
            "Print what each admission webhook would change in an object, and by which rule.",
        ),
        "extension": Command(
            "pergola.cli.extension.app:app",
            "Run extensions: actuators for extension resources, such as Networks.",
        ),
        "manifests": Command(
            "pergola.cli.manifests:app", "Check manifests against the house rules."
        ),
        "infra-manager": Command(
            "pergola.cli.infra:infra_manager",
            "Fill InfraClusters of Cluster API from existing networks, and keep them up to date.",
        ),
        "infra": Command(
            "pergola.cli.infra:app",
            "Inspect and adopt externally managed cluster infrastructure of Cluster API.",
        ),
        "version": Command(
            "pergola.cli.version:version",
            "Print the versions of this command, of the cluster, and of what Pergola runs there.",
        ),
        "support-bundle": Command(
            "pergola.cli.support.command:support_bundle",
            "Write an archive with what support needs to see, and print what is in it.",
        ),
        "completion": Command(
            "pergola.cli.completion.command:completion",
            "Print the script that completes command lines in a shell; changes no file.",
        ),
    }
)


def application(*, is_overview: bool = False) -> App:
    """Return the command line, which imports its commands on demand.

    Args:
        is_overview: Whether it only lists its commands.
    """
    app = App(
        name="pergola",
        help=(
            "A Kubernetes control plane in Python: keeps objects in a cluster exactly as "
            "ManagedResources describe them, and includes a real cluster to try it on."
        ),
        version=f"pergola {__version__}",
        # The overview has no markup, whose library takes longer to import than all others.
        help_format="plaintext" if is_overview else "markdown",
        default_parameter=Parameter(show_default=_shown),
    )
    for name, command in COMMANDS.items():
        app.command(command.target, name=name, help=command.summary if is_overview else None)
    return app


def _shown(default: object) -> object:
    """Return the default of an option as help shows it; None hides an empty default."""
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return default or None
