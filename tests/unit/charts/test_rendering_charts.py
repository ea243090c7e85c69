"""Charts rendered by the real Helm."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Final

import orjson
import pytest
from aiohttp import test_utils, web

from pergola.api.objects import JsonObject
from pergola.charts import Helm, HelmFailed, Limits, Release, TooLarge, merge_values, read_chart
from pergola.charts.archive import Chart
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import HELM
from tests.support.chart_files import chart_archive

RELEASE = Release(name="dns", namespace="demo", values={"a": 1}, kube_version="v1.33.4")

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built


@pytest.fixture(scope="module")
def program() -> str:
    return str(binaries.find((HELM,))[HELM])


def chart(template: str | None = None) -> Chart:
    templates = None if template is None else {"template.yaml": template}
    return read_chart(chart_archive(templates), "oci://registry.example/greeter:1")


async def test_rendered_objects_use_the_release_the_values_and_the_version(program: str) -> None:
    [obj] = await Helm(program).render(chart(), RELEASE)

    assert obj["metadata"] == {"name": "dns", "namespace": "demo"}
    assert orjson.loads(obj["data"]["values"]) == {"a": 1}
    assert obj["data"]["version"] == "v1.33.4"


async def test_hooks_and_empty_templates_are_left_out(program: str) -> None:
    template = """\
{{- if .Values.absent }}
a: 1
{{- end }}
---
apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
"""
    assert await Helm(program).render(chart(template), RELEASE) == []


async def test_templates_can_check_api_versions_of_the_cluster(program: str) -> None:
    template = '{v: {{ .Capabilities.APIVersions.Has "druid.gardener.cloud/v1alpha1" }}}'
    with_etcd = replace(RELEASE, api_versions=("druid.gardener.cloud/v1alpha1",))

    assert await Helm(program).render(chart(template), with_etcd) == [{"v": True}]
    assert await Helm(program).render(chart(template), RELEASE) == [{"v": False}]


async def test_a_chart_with_equal_values_is_rendered_once(program: str, tmp_path: Path) -> None:
    wrapper = tmp_path / "helm"
    wrapper.write_text(f'#!/bin/sh\necho run >> {tmp_path}/runs\nexec {program} "$@"\n')
    wrapper.chmod(0o755)
    helm = Helm(str(wrapper))

    first = await helm.render(chart(), RELEASE)
    first[0]["data"] = "changed by the caller"
    second = await helm.render(chart(), RELEASE)
    await helm.render(chart(), replace(RELEASE, values={"a": 2}))

    assert second[0]["data"] != "changed by the caller"
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_errors_of_helm_become_one_sentence_without_secrets(program: str) -> None:
    template = '{{ fail (printf "no zone in %s" .Values.zone) }}'
    release = replace(RELEASE, values={"zone": "s3cr3t"}, hidden=frozenset({"s3cr3t"}))

    with pytest.raises(HelmFailed, match="cannot render chart oci:") as caught:
        await Helm(program).render(chart(template), release)
    assert "no zone in <hidden>" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("template", "problem"), [("{{ if }}", "parse error"), ("- a\n- b", "cannot render|not an obj")]
)
async def test_invalid_templates_are_refused(program: str, template: str, problem: str) -> None:
    with pytest.raises(HelmFailed, match=problem):
        await Helm(program).render(chart(template), RELEASE)


async def test_helm_is_killed_if_it_takes_too_long(tmp_path: Path) -> None:
    sleeper = tmp_path / "helm"
    sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
    sleeper.chmod(0o755)

    with pytest.raises(HelmFailed, match=r"within 0\.1 s"):
        await Helm(str(sleeper), Limits(render_seconds=0.1)).render(chart(), RELEASE)


async def test_objects_beyond_the_limit_are_refused(program: str) -> None:
    template = '{{ range until 1000 }}\n---\na: {{ repeat 10000 "x" }}\n{{ end }}'

    with pytest.raises(TooLarge, match="its objects have more than 1 MiB"):
        await Helm(program, Limits(rendered_bytes=1024 * 1024)).render(chart(template), RELEASE)


async def test_a_process_of_helm_that_keeps_the_output_open_does_not_stop_the_caller(
    tmp_path: Path,
) -> None:
    forking = tmp_path / "helm"
    forking.write_text("#!/bin/sh\nsleep 20 &\nwait\n")
    forking.chmod(0o755)

    with pytest.raises(HelmFailed, match=r"within 0\.5 s"):
        async with asyncio.timeout(15):
            await Helm(str(forking), Limits(render_seconds=0.5)).render(chart(), RELEASE)


async def test_the_error_about_a_missing_helm_says_how_to_configure_it(tmp_path: Path) -> None:
    with pytest.raises(HelmFailed, match="install it, or name its path in PERGOLA_HELM"):
        await Helm(str(tmp_path / "absent")).render(chart(), RELEASE)


async def test_an_environment_variable_selects_helm(program: str) -> None:
    assert await Helm.of({"PERGOLA_HELM": program}).render(chart(), RELEASE)


def test_values_are_merged_at_all_depths() -> None:
    values = {"a": {"b": 1, "c": [1]}, "d": 1}

    assert merge_values(values, {"a": {"c": [2], "e": 3}, "f": None}) == {
        "a": {"b": 1, "c": [2], "e": 3},
        "d": 1,
        "f": None,
    }
    assert values == {"a": {"b": 1, "c": [1]}, "d": 1}


JSON_SCHEMA: Final = "https://json-schema.org"
LOCAL: Final[JsonObject] = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}
ACCEPTED: Final[tuple[JsonObject, ...]] = (
    {"$id": "URL/id", "type": "object"},
    {"$id": "URL/id/", **LOCAL},
    {"properties": {"x": {"$id": "URL/nested/", **LOCAL}}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "id": "URL/id/", **LOCAL},
    {"$schema": "http://json-schema.org/draft-06/schema"},
    {"$schema": f"{JSON_SCHEMA}/draft-07/schema#"},
    {"$schema": f"{JSON_SCHEMA}/draft/2019-09/schema", "properties": {"x": {"$recursiveRef": "#"}}},
    {"$schema": f"{JSON_SCHEMA}/draft/2020-12/schema", "properties": {"x": {"$dynamicRef": "#"}}},
    {"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}}},
    {"format": "URL/format", "contentMediaType": "URL/type", "examples": ["URL/example"]},
)


async def test_helm_follows_no_reference_in_an_accepted_schema(program: str) -> None:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    async with test_utils.RawTestServer(answer) as server:
        url = str(server.make_url("/")).rstrip("/")
        for accepted in ACCEPTED:
            schema = orjson.dumps(accepted).decode().replace("URL", url)
            content = chart_archive(schema=schema)
            found = read_chart(content, "oci://registry.example/greeter:1")
            assert await Helm(program).render(found, RELEASE), schema
    assert asked == []
