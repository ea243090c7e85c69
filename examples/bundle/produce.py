"""A producer of a ManagedResource: a web server and its configuration.

    python examples/bundle/produce.py                  # apply, and wait until it is healthy
    python examples/bundle/produce.py --text goodbye   # new content: a new ConfigMap, a rollout
    python examples/bundle/produce.py --delete         # delete, and wait until all is gone

Speaks to the cluster of $KUBECONFIG, where a resource manager has to run (`pergola up`).
"""

import argparse
import asyncio
import sys

from pergola.api.objects import JsonObject, Key, name_of
from pergola.bundle import (
    Bundle,
    BundleError,
    Registry,
    annotate,
    apply,
    build,
    delete,
    make_unique,
    wait_deleted,
    wait_not_progressing,
)
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import load

NAMESPACE = "default"
NAME = "greeter"


def config(text: str) -> JsonObject:
    """Return the configuration: immutable, and named after its content."""
    return make_unique(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "data": {"index.html": f"<h1>{text}</h1>\n"},
        }
    )


def web_server(config_name: str) -> JsonObject:
    """Return a Deployment that mounts the configuration, and is annotated with what it uses."""
    labels = {"app": NAME}
    container = {
        "name": "web",
        "image": "nginx:1.29",
        "volumeMounts": [{"name": "pages", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "pages", "configMap": {"name": config_name}}],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    return annotate(deployment)


def greeter(text: str) -> Bundle:
    """Return all objects as one ManagedResource."""
    pages = config(text)
    return build(NAMESPACE, NAME, Registry(pages, web_server(name_of(pages))))


async def produce(client: Client, text: str) -> None:
    """Apply, and wait until the last replica has the new content."""
    bundle = await asyncio.to_thread(greeter, text)
    await apply(client, bundle)
    print(f"applied ManagedResource {bundle.key}")
    for secret in bundle.secrets:
        print(f"  its objects are in Secret {name_of(secret)}")
    await wait_not_progressing(client, bundle.key, timeout=120)
    print("all objects are healthy and rolled out")


async def remove(client: Client) -> None:
    """Delete, and wait until the objects are gone as well."""
    await delete(client, Key(NAMESPACE, NAME))
    await wait_deleted(client, Key(NAMESPACE, NAME), timeout=120)
    print(f"deleted ManagedResource {NAMESPACE}/{NAME} and all its objects")


async def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Produces a ManagedResource.")
    parser.add_argument("--text", default="hello", help="what the web server says")
    parser.add_argument("--delete", action="store_true", help="delete it again")
    arguments = parser.parse_args()
    async with Client.connect(load()) as client:
        await (remove(client) if arguments.delete else produce(client, arguments.text))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (BundleError, KubeError) as error:
        sys.exit(f"error: {error}")
