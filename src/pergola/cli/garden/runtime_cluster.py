"""The Garden of a runtime cluster, and the settings that its components are rendered with."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.operator_settings import OperatorSettings, settings_in, settings_of

if TYPE_CHECKING:
    from pergola.kube.client import Client
    from pergola.operator.run.observed import Template


class Source(NamedTuple):
    """The options with which a command finds a Garden.

    Attributes:
        garden: The name of the Garden; empty for the only one.
        config: The configuration file of the operator; None for that of the running operator.
    """

    garden: str
    config: Path | None
    cluster: ClusterOptions


class GardenNotFound(Exception):
    """The runtime cluster does not have the Garden; the text says what to do."""


async def chosen(client: "Client", name: str) -> str:
    """Return the name of the requested Garden, or of the only one.

    Raises:
        GardenNotFound: There is not exactly one.
        KubeError: The API server refused, or did not answer.
    """
    from pergola.api.objects import name_of
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.kube.errors import UnknownKind

    try:
        gardens = sorted(map(name_of, await client.list(GARDEN, metadata_only=True)))
    except UnknownKind:
        gardens = []
    found = [each for each in gardens if name in ("", each)]
    if len(found) == 1:
        return found[0]
    named = f"Garden {name}" if name else "one Garden"
    listed = ", ".join(gardens) or "none"
    raise GardenNotFound(
        f"there is not {named} in the cluster; it has {listed}: name one of them, or the runtime "
        "cluster with --kubeconfig or --context"
    )


async def runtime_template(client: "Client", config: Path | None) -> "Template":
    """Return the template of landscapes in a runtime cluster.

    Without a configuration file, it uses the settings of the running operator; raises as
    `settings_of` and `settings_in` do.
    """
    return await template_in(client, await runtime_settings(client, config))


async def runtime_settings(client: "Client", config: Path | None) -> OperatorSettings:
    """Return the settings in a file or, without one, of the operator in a runtime cluster."""
    return await settings_in(client) if config is None else settings_of(config)


async def template_in(client: "Client", settings: OperatorSettings) -> "Template":
    """Return the template of landscapes in a runtime cluster, for settings of the operator."""
    import orjson

    version = orjson.loads(await client.get_raw("/version"))["gitVersion"].removeprefix("v")
    return template_of(settings, version.partition("-")[0].partition("+")[0])


def template_of(settings: OperatorSettings, runtime_version: str) -> "Template":
    """Return the template of landscapes in a cluster of a Kubernetes version."""
    from pergola.operator.template import template
    from pergola.resource_manager.registration import garden_webhooks

    return template(settings.config, settings.images, runtime_version, garden_webhooks)
