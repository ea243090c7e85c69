"""A shell for the commands of a page.

`pergola` runs as a process. The sandbox has no kubectl: a client performs the few of its commands
that the pages use, and any other one is an error.
"""

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import orjson

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.kube.yaml import parse_documents
from tests.support.documented.kubectl import read

_KINDS: Final = {"deployment": DEPLOYMENT, "etcd": ETCD, "garden": GARDEN}
_PROGRAMS: Final = Path(sys.executable).parent


class Shell:
    """Runs commands in a folder, for the cluster of a client.

    Attributes:
        folder: The working directory.
    """

    def __init__(self, client: Client, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        self._client = client
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PATH": f"{_PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        self._verbs: Mapping[str, Callable[[argparse.Namespace], Awaitable[None]]] = {
            "annotate": self._annotate,
            "apply": self._apply,
            "delete": self._delete,
            "patch": self._patch,
            "scale": self._scale,
        }

    async def run(self, *lines: str) -> str:
        """Run commands one after another, and return their output; fail if one of them fails."""
        printed = ""
        for line in lines:
            if line.startswith("kubectl "):
                await self._kubectl(shlex.split(line, comments=True)[1:])
            else:
                printed += await self._process(line)
        return printed

    async def _process(self, line: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-ec", line),
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, f"{line}: {process.returncode}: {(out + err).decode()}"
        return out.decode()

    async def _kubectl(self, arguments: list[str]) -> None:
        found = read(arguments)
        await self._verbs[found.kubectl](found)

    async def _apply(self, found: argparse.Namespace) -> None:
        for document in parse_documents((self.folder / found.filename).read_bytes()):
            assert isinstance(document.value, dict)
            await self._client.apply(document.value, manager="kubectl", force=True)

    async def _annotate(self, found: argparse.Namespace) -> None:
        kind, name, *pairs = found.words
        annotations = dict(pair.split("=", 1) for pair in pairs)
        await self._merge(kind, found.namespace, name, {"metadata": {"annotations": annotations}})

    async def _delete(self, found: argparse.Namespace) -> None:
        kind, *names = found.words
        for name in names:
            await self._client.delete(_KINDS[kind], Key(found.namespace, name))

    async def _patch(self, found: argparse.Namespace) -> None:
        kind, name = found.words
        await self._merge(kind, found.namespace, name, orjson.loads(found.patch))

    async def _scale(self, found: argparse.Namespace) -> None:
        kind, *names = found.words
        for name in names:
            patch: JsonObject = {"spec": {"replicas": int(found.replicas)}}
            await self._merge(kind, found.namespace, name, patch)

    async def _merge(self, kind: str, namespace: str, name: str, patch: JsonObject) -> None:
        gvk: GroupVersionKind = _KINDS[kind]
        await self._client.patch(gvk, Key(namespace, name), patch)
