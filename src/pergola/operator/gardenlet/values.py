"""The values of gardenlet's chart: those in the Gardenlet, and those that the operator adds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.image_vector import OVERWRITE, ImageVector
from pergola.charts import merge_values
from pergola.garden.components.virtual_access import TO_VIRTUAL_API_SERVER
from pergola.garden.landscape import NAMESPACE
from pergola.operator.gardenlet.names import BOOTSTRAP_KUBECONFIG, KUBECONFIG, PROGRAM

COMPONENTS: Final = f"{OVERWRITE}_COMPONENTS"
"""The environment variable with a file of image vectors for the components of components."""

_CHART: Final = "gardenlet-chart"
_KUBECONFIG: Final = {"name": KUBECONFIG, "namespace": NAMESPACE}
_BACKUP: Final = "checksum/seed-backup-secret"


class Inherited(NamedTuple):
    """The values that a gardenlet inherits from the operator, unless its Gardenlet overrides them.

    Attributes:
        version: Of Gardener, which is that of the operator.
        image, chart: Of gardenlet in this version.
        images, component_images: Files that override image vectors; empty without one.
    """

    version: str
    image: str
    chart: str
    images: str = ""
    component_images: str = ""

    @classmethod
    def of(cls, vector: ImageVector, version: str, environment: Mapping[str, str]) -> "Inherited":
        """Return the values that an operator passes on.

        Raises:
            BundleError: The image vector has no gardenlet.
            OSError: A file that a variable names cannot be read.
        """
        return cls(
            version,
            vector.find(PROGRAM, version=version),
            vector.find(_CHART, version=version),
            _content(environment.get(OVERWRITE, "")),
            _content(environment.get(COMPONENTS, "")),
        )


class Situation(NamedTuple):
    """The facts about one gardenlet determined by a run.

    Attributes:
        server: The address of the virtual cluster for this gardenlet.
        bootstrap: A kubeconfig with a bootstrap token; empty if gardenlet already has its own.
        backup: Identifies the content of the Secret with the backup credentials; empty without one.
        is_runtime: Whether it is deployed into the runtime cluster.
    """

    server: str
    bootstrap: str
    backup: str
    is_runtime: bool


def render_values(gardenlet: JsonObject, inherited: Inherited, found: Situation) -> JsonObject:
    """Return the values of the chart for a Gardenlet."""
    deployment = dict(map_at(gardenlet, "spec", "deployment"))
    deployment.pop("helm", None)
    components = deployment.pop("componentImageVectorOverwrite", None) or inherited.component_images
    images = deployment.pop("imageVectorOverwrite", None) or inherited.images
    overwrites = {"imageVectorOverwrite": images, "componentImageVectorOverwrites": components}
    values = {
        **deployment,
        **{name: text for name, text in overwrites.items() if text},
        "image": {**_image(inherited.image), **map_at(deployment, "image")},
        "config": render_config(gardenlet, found),
    }
    if found.is_runtime:
        values["podLabels"] = {**TO_VIRTUAL_API_SERVER, **map_at(deployment, "podLabels")}
    if found.backup:
        values["podAnnotations"] = {**map_at(deployment, "podAnnotations"), _BACKUP: found.backup}
    return values


def render_config(gardenlet: JsonObject, found: Situation) -> JsonObject:
    """Return gardenlet's configuration in the format of its chart."""
    config = map_at(gardenlet, "spec", "config")
    connection = dict(map_at(config, "gardenClientConnection"))
    connection["gardenClusterAddress"] = found.server
    connection["kubeconfigSecret"] = _kubeconfig_secret(connection)
    bootstrap = map_at(connection, "bootstrapKubeconfig")
    connection.pop("bootstrapKubeconfig", None)
    if found.bootstrap:
        connection.pop("kubeconfig", None)
        place = {"name": BOOTSTRAP_KUBECONFIG, "namespace": NAMESPACE, **bootstrap}
        connection["bootstrapKubeconfig"] = {**place, "kubeconfig": found.bootstrap}
    own = {
        "seedConfig": {"metadata": {"name": name_of(gardenlet)}},
        "leaderElection": {"resourceNamespace": NAMESPACE},
    }
    return {**merge_values(config, own), "gardenClientConnection": connection}


def kubeconfig_key(gardenlet: JsonObject) -> Key:
    """Return the Secret in the target where gardenlet stores its kubeconfig."""
    place = _kubeconfig_secret(map_at(gardenlet, "spec", "config", "gardenClientConnection"))
    return Key(str(place["namespace"]), str(place["name"]))


def _kubeconfig_secret(connection: JsonObject) -> JsonObject:
    """Return the reference to that Secret, with defaults for missing fields."""
    return {**_KUBECONFIG, **map_at(connection, "kubeconfigSecret")}


def _image(reference: str) -> JsonObject:
    """Return an image in the chart's format: a digest takes the place of the tag."""
    found = ImageReference.parse(reference)
    return {"repository": found.repository, "tag": found.digest or found.tag}


def _content(path: str) -> str:
    return Path(path).read_text() if path else ""
