"""`pergola aws cloud-config`: print the values that a control plane needs for its network."""

import asyncio
import sys
from typing import TYPE_CHECKING

from pergola.cli.aws.subject import DEFAULT_SOURCE, ENVIRONMENT, Source, read_subject
from pergola.cli.manifest_files import named
from pergola.cli.output import ReportOutput
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.aws.subject import Subject
    from pergola.extension_api.cluster import Shoot
    from pergola.providers.aws.control_plane.values import Given


def cloud_config(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    output: ReportOutput = "text",
) -> None:
    """Print the values for the control plane: cloud provider config, arguments, replicas, and why.

    Sends no request to AWS: all values follow from the Infrastructure's status. `-o yaml` is for
    `kubectl apply`: the ConfigMap, with the rest as comments.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    """
    from pergola.providers.aws.control_plane.values import given

    # This needs neither credentials nor permission to read their Secret.
    subject = asyncio.run(read_subject(resource, source, ENVIRONMENT))
    found = given(subject.infrastructure, shoot_of(subject))
    shown = {"text": _text, "json": _json, "yaml": _yaml}[output]
    say(shown(found), end="")


def shoot_of(subject: "Subject") -> "Shoot":
    """Return the Shoot of an Infrastructure; warn if its manifests have none, and assume one."""
    from pergola.extension_api.cluster import Cluster, Shoot

    cluster = Cluster.from_object(subject.cluster) if subject.cluster else None
    if cluster is not None and cluster.shoot is not None:
        return cluster.shoot
    say(
        f"{named(subject.infrastructure)} has no Cluster with a Shoot: assuming IPv4 with an "
        "overlay",
        file=sys.stderr,
    )
    return Shoot({})


def control_plane_of(subject: "Subject") -> "Given | None":
    """Return what the control plane gets from the network as it is now; None before the first.

    Raises:
        ExtensionError, Malformed: the status, or the Shoot's configuration, is incomplete.
    """
    from pergola.api.objects import map_at
    from pergola.providers.aws.control_plane.values import given

    if not map_at(subject.infrastructure, "status", "providerStatus"):
        return None
    return given(subject.infrastructure, shoot_of(subject))


def _text(found: "Given") -> str:
    from pergola.api.objects import Key
    from pergola.providers.aws.control_plane.cloud_provider import KEY

    lines = [
        *controllers(found),
        f"ConfigMap {Key.of(found.config_map)}, {KEY}",
        *(f"  {line}" for line in found.config_map["data"][KEY].splitlines()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _yaml(found: "Given") -> str:
    from pergola.kube.yaml import dump

    comments = "".join(f"# {line}\n" for line in controllers(found))
    return comments + dump(found.config_map)


def _json(found: "Given") -> str:
    import orjson

    value = {"configMap": found.config_map, **controllers_data(found)}
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def controllers_data(found: "Given") -> "JsonObject":
    """Return the controllers whose arguments or replicas depend on the network, and why."""
    return {
        "cloudControllerManager": found.cloud_controller._asdict(),
        "customRouteController": found.route_controller._asdict(),
    }


def controllers(found: "Given") -> list[str]:
    """Return the same as lines of text."""
    return [line for text, reason in found.controllers() for line in (text, f"  {reason}")]
