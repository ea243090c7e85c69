import base64
import runpy
from pathlib import Path

import brotli

from pergola.api.objects import JsonObject, annotations_of, map_at, name_of
from pergola.bundle.managed_resource import Bundle
from pergola.bundle.references import Reference, annotated_references
from pergola.kube.yaml import parse_documents

EXAMPLE = Path(__file__).parents[3] / "examples" / "bundle" / "produce.py"


def objects_of(text: str) -> dict[str, JsonObject]:
    bundle = runpy.run_path(str(EXAMPLE))["greeter"](text)
    assert isinstance(bundle, Bundle)
    [secret] = bundle.secrets
    stream = brotli.decompress(base64.b64decode(secret["data"]["data.yaml.br"]))
    values = [document.value for document in parse_documents(stream)]
    return {str(value["kind"]): value for value in values if isinstance(value, dict)}


def test_changed_content_rolls_out_the_workload_of_the_example() -> None:
    before, after = objects_of("hello"), objects_of("goodbye")
    assert name_of(before["ConfigMap"]) != name_of(after["ConfigMap"])
    template = map_at(after["Deployment"], "spec", "template")
    assert annotated_references(annotations_of(template)) == {
        Reference("configmap", name_of(after["ConfigMap"]))
    }
