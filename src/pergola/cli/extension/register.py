"""`pergola extension register`: prints the documents that register an extension."""

from typing import TYPE_CHECKING, Literal

from pergola.cli.extension.options import ExtensionCommandError
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.extensions.actuator import Actuator


def register(
    *actuators: str,
    ref: str = "",
    image: str = "",
    install: str = "",
    namespace: str = "",
    format: Literal["operator", "controller"] | None = None,  # noqa: A002 - the option's name
) -> None:
    """Print the documents that register the extension of some actuators, as YAML.

    With --ref they refer to a Helm chart. With --image they contain a chart that runs this image,
    so that no chart registry is needed; --install prints the objects of that chart.

    Parameters
    ----------
    actuators
        calico, module:Class or ./file.py:Class, as `pergola extension run` takes them.
    ref
        The chart in an OCI registry.
    image
        An image with Pergola and the modules of the actuators.
    install
        An image; prints the objects for a seed instead: identity, permissions, Deployment.
    namespace
        The namespace of those objects; by default that of the Helm release.
    format
        operator for one Extension, which needs --ref; controller for a ControllerDeployment and a
        ControllerRegistration. The default with --ref is operator.
    """
    from pergola.extensions.loading import load_actuators
    from pergola.kube.yaml import dump

    if not actuators:
        raise ExtensionCommandError(
            "name an extension: pergola extension register calico --ref registry/chart:v1, or one"
            " of your own as module:Actuator"
        )
    loaded = load_actuators(actuators)
    if install:
        if ref or image or format:
            raise ExtensionCommandError(
                "--install cannot be combined with --ref, --image or --format"
            )
        documents = _installation(loaded, list(actuators), install, namespace)
    else:
        documents = _registration(loaded, list(actuators), ref, image, format)
    say("---\n".join(dump(document) for document in documents), end="")


def _installation(
    actuators: "list[Actuator]", references: list[str], image: str, namespace: str
) -> "list[JsonObject]":
    from dataclasses import replace

    from pergola.extensions.installation import installation_documents, installation_of

    found = installation_of(actuators, references, image)
    return installation_documents(replace(found, namespace=namespace) if namespace else found)


def _registration(
    actuators: "list[Actuator]", references: list[str], ref: str, image: str, form: str | None
) -> "list[JsonObject]":
    from pergola.extensions.registration import (
        controller_documents,
        extension,
        registration_documents,
        registration_of,
    )

    if bool(ref) == bool(image):
        raise ExtensionCommandError(
            "say where the extension comes from: --ref for a Helm chart in an OCI registry, or "
            "--image for a generated chart"
        )
    if image:
        if form == "operator":
            raise ExtensionCommandError("--format operator needs a chart in a registry: --ref")
        return registration_documents(actuators, references, image)
    registration = registration_of(actuators, chart=ref)
    if form == "controller":
        return controller_documents(registration)
    return [extension(registration)]
