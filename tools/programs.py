"""Build the programs and images that `make test` runs, so that no test waits for a build.

Parts of the soak need more; `python -m tools.soak PART` builds that.
"""

import os
import shutil
import sys
import time
from typing import Final

from pergola.sandbox import ALL, SandboxError, binaries
from pergola.sandbox.images import build as images
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.module import CLUSTER_API_AWS_CONFIG, NODE_MODULES
from pergola.sandbox.node import requirements
from pergola.sandbox.on_demand import CRANE, HELM, KUBECTL, MACHINES, REGISTRY

PROGRAMS: Final = (*ALL, CRANE, HELM, REGISTRY, CLUSTER_API_AWS_CONFIG, *MACHINES.parts)
IMAGES: Final = ("gardener-apiserver",)
"""The image of a program that also runs as a process, without a node."""
NODE_IMAGES: Final = ("istiod", "istio-proxy", "envoy")


def say(line: str) -> None:
    """Report progress on stderr, as long builds do."""
    print(line, file=sys.stderr, flush=True)


def build() -> None:
    """Build what is missing; without the requirements of a node, only what needs none."""
    binaries.find(PROGRAMS, progress=say)
    if not shutil.which("kubectl"):
        binaries.find((KUBECTL,), progress=say)
    images.build(named(IMAGES), say, os.environ)
    try:
        requirements.check()
        binaries.find(tuple(part for module in NODE_MODULES for part in module.parts), say)
        images.build(named(NODE_IMAGES), say, os.environ)
    except SandboxError as error:
        say(f"tests on a real node will not run: {error}")


if __name__ == "__main__":
    began = time.monotonic()
    build()
    say(f"programs and images are ready after {time.monotonic() - began:.0f} s")
