"""`pergola aws cloud-config`: what a cluster's control plane has to be given for its network."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.asked import ENVIRONMENT, asked_at, place_of
from pergola.cli.aws.file import named

if TYPE_CHECKING:
    from pergola.cli.aws.asked import Asked
    from pergola.extension_api.cluster import Shoot
    from pergola.providers.aws.control_plane.values import Given

Output = Annotated[Literal["text", "json", "yaml"], Parameter(alias="-o")]


def cloud_config(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Annotated[str, Parameter(alias="-n")] = "default",
    output: Output = "text",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Print what the control plane has to be given: cloud provider, arguments, replicas, and why.

    Only reads, and does not ask AWS: all of it follows from the Infrastructure's status.

    Parameters
    ----------
    file
        A manifest with an Infrastructure and its status; - reads it from the standard input. A
        Cluster beside it has the Shoot's IP families, overlay and controlPlaneConfig.
    name
        An Infrastructure in a cluster, in place of a file.
    namespace
        Its namespace.
    output
        `text` for people, `json` for programs, `yaml` for `kubectl apply`: the ConfigMap, with the
        rest as comments.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    from pergola.providers.aws.control_plane.values import given

    # No credentials are needed, and so no right to read the Secret with them either.
    place = place_of(file, name, namespace, ENVIRONMENT, kubeconfig, context)
    asked = asyncio.run(asked_at(place))
    found = given(asked.infrastructure, _shoot(asked))
    shown = {"text": _text, "json": _json, "yaml": _yaml}[output]
    print(shown(found), end="")


def _shoot(asked: "Asked") -> "Shoot":
    from pergola.extension_api.cluster import Cluster, Shoot

    cluster = Cluster.from_object(asked.cluster) if asked.cluster else None
    if cluster is not None and cluster.shoot is not None:
        return cluster.shoot
    print(
        f"{named(asked.infrastructure)} has no Cluster with a Shoot beside it: taken as IPv4 with "
        "an overlay",
        file=sys.stderr,
    )
    return Shoot({})


def _text(found: "Given") -> str:
    from pergola.api.objects import Key
    from pergola.providers.aws.control_plane.cloud_provider import KEY

    lines = [
        *_controllers(found),
        f"ConfigMap {Key.of(found.config_map)}, {KEY}",
        *(f"  {line}" for line in found.config_map["data"][KEY].splitlines()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _yaml(found: "Given") -> str:
    from pergola.kube.yaml import dump

    comments = "".join(f"# {line}\n" for line in _controllers(found))
    return comments + dump(found.config_map)


def _json(found: "Given") -> str:
    import orjson

    value = {
        "configMap": found.config_map,
        "cloudControllerManager": found.cloud_controller._asdict(),
        "customRouteController": found.route_controller._asdict(),
    }
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _controllers(found: "Given") -> list[str]:
    return [
        f"cloud-controller-manager {' '.join(found.cloud_controller.arguments)}",
        f"  {found.cloud_controller.reason}",
        f"aws-custom-route-controller, replicas: {found.route_controller.replicas}",
        f"  {found.route_controller.reason}",
    ]
