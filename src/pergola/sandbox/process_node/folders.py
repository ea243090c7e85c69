"""The folders of a pod's volumes on this machine."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at, namespace_of

# Volumes of the host, and mounts without a volume, are not for this node to make.
_OF_HOST: Final[Mapping[str, JsonObject]] = MappingProxyType({"hostPath": {}})


class Folders:
    """The folders of one pod: each container has its own files, and all share the other volumes.

    Args:
        own: for files of Secrets, ConfigMaps and the like.
        short: for volumes that last as long as the pod, because the paths of sockets are short.
        claims: for the data of claims, which outlives the pod.
    """

    def __init__(self, pod: JsonObject, *, own: Path, short: Path, claims: Path) -> None:
        self._volumes = {each["name"]: each for each in maps_at(pod, "spec", "volumes")}
        self._own = own
        self._short = short
        self._claims = claims / namespace_of(pod)
        self._shared: dict[str, Path] = {}

    def make(self, container: JsonObject) -> dict[str, Path]:
        """Make the folders of a container's mounts; return them by their paths in the container.

        Mounts of folders of the host are left out.
        """
        made: dict[str, Path] = {}
        for mount in maps_at(container, "volumeMounts"):
            volume = self._volumes.get(mount["name"], _OF_HOST)
            if "hostPath" in volume:
                continue
            path, part = str(mount["mountPath"]), str(mount.get("subPath") or "")
            if shared := self._folder(volume):
                made[path] = folder = shared / part
            else:
                made[path] = own = self._own / str(container["name"]) / path.lstrip("/")
                folder = own.parent if part else own  # a part of a Secret is a file
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made

    def remove(self) -> None:
        """Remove all of them but those of claims."""
        for folder in (self._own, *self._shared.values()):
            shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, volume: Mapping[str, JsonObject]) -> Path | None:
        """Return the folder of a volume that containers share, or None for any other volume."""
        if "persistentVolumeClaim" in volume:
            return self._claims / str(map_at(volume, "persistentVolumeClaim")["claimName"])
        if "emptyDir" not in volume:
            return None
        name = str(volume["name"])
        if name not in self._shared:
            self._shared[name] = Path(tempfile.mkdtemp(prefix="v-", dir=self._short))
        return self._shared[name]
