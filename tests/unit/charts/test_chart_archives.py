"""Archives of charts, which are checked before Helm reads them."""

import base64
import gzip
import io
import re
import tarfile
from collections.abc import Mapping

import orjson
import pytest

from pergola.charts import Limits, NotAChart, TooLarge, embedded_chart, read_chart
from tests.support.chart_files import archive, chart_archive, metadata

SOURCE = "oci://registry.example/greeter:1"
CHART_YAML = metadata()
SCHEMA = "values.schema.json"


def link(name: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    found.linkname = "/etc/passwd"
    return found


def test_a_chart_has_the_name_and_version_of_its_metadata() -> None:
    content = chart_archive()

    chart = read_chart(content, SOURCE)

    assert (chart.name, chart.version, chart.source) == ("greeter", "1.0.0", SOURCE)
    assert chart.content == content
    assert chart.digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not an archive", "its content is not gzip"),
        (gzip.compress(b"not an archive" * 100, mtime=0), "its content is not a tar file"),
        (chart_archive()[:-20], "its archive is truncated"),
        (archive({"greeter/values.yaml": "a: 1"}), "it has no Chart.yaml"),
        (archive({"Chart.yaml": CHART_YAML}), "it has no Chart.yaml"),
        (archive({"a/Chart.yaml": CHART_YAML, "b/Chart.yaml": CHART_YAML}), "several Chart.yaml"),
        (archive({"greeter/Chart.yaml": "- a"}), "its Chart.yaml is not a map"),
        (archive({"greeter/Chart.yaml": "a: ["}), "its Chart.yaml is not valid YAML"),
        (archive({"greeter/Chart.yaml": "name: greeter"}), "has no name or no version"),
        (archive({"greeter/Chart.yaml": CHART_YAML, "../x": "x"}), "a file outside of its folder"),
        (archive({"greeter/Chart.yaml": CHART_YAML, "/x": "x"}), "a file outside of its folder"),
        (archive({"greeter/Chart.yaml": CHART_YAML, "l": link("g/l")}), "is a link or a device"),
        (
            archive({"greeter/Chart.yaml": CHART_YAML, "l": link("g/d", tarfile.CHRTYPE)}),
            "is a link or a device",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_but_the_archive_of_one_chart_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(NotAChart, match=problem) as caught:
        read_chart(content, SOURCE)
    assert str(caught.value).startswith(f"{SOURCE} is not a Helm chart: ")


def in_places(schema: str) -> list[bytes]:
    """Return charts with a schema of their own, of a dependency, and of a packed one."""
    chart = {"greeter/Chart.yaml": CHART_YAML}
    below = "greeter/charts/sub"
    packed = archive({"sub/Chart.yaml": CHART_YAML, f"sub/{SCHEMA}": schema})
    packed_twice = archive({"sub/Chart.yaml": CHART_YAML, "sub/charts/sub.tgz": packed})
    return [
        archive({**chart, f"greeter/{SCHEMA}": schema}),
        archive(
            {**chart, f"{below}/Chart.yaml": CHART_YAML, f"{below}/values.schema.json": schema}
        ),
        archive({**chart, "greeter/charts/sub-1.0.0.tgz": packed}),
        archive({**chart, "greeter/charts/sub-1.0.0.tgz": packed_twice}),
    ]


@pytest.mark.parametrize("target", ["http://10.0.0.1/x", "file:///etc/passwd", "other.json", ""])
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef", "$schema"])
@pytest.mark.parametrize(
    "place", ["{}", '{"properties": {"a": {}}}', '{"x-any": [{"allOf": [{}]}]}']
)
def test_a_schema_must_not_refer_to_files_or_servers(keyword: str, target: str, place: str) -> None:
    schema = place.replace("{}", orjson.dumps({keyword: target}).decode())
    for content in in_places(schema):
        with pytest.raises(NotAChart, match=re.escape(keyword)):
            read_chart(content, SOURCE)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}}', "\ufeff{}", "[" * 5000 + "]" * 5000])
def test_a_schema_that_is_not_json_is_refused(text: str) -> None:
    for content in in_places(text):
        with pytest.raises(NotAChart, match=r"values\.schema\.json is not valid JSON"):
            read_chart(content, SOURCE)


def test_nothing_may_follow_the_archive() -> None:
    """Helm also reads further members of gzip."""
    for more in (archive({"greeter/templates/x": link("l")}), b"garbage"):
        with pytest.raises(NotAChart, match="follows the end of its archive"):
            read_chart(chart_archive() + more, SOURCE)


def test_packed_dependencies_are_checked_like_the_chart() -> None:
    with pytest.raises(NotAChart, match=r"charts/sub\.tgz, is not a Helm chart: .* is a link"):
        read_chart(with_dependency({"sub/l": link("l")}), SOURCE)
    zeros = {f"sub/zeros{n}": bytes(600 * 1024) for n in range(2)}
    with pytest.raises(TooLarge, match="its files together has more than 0 MiB"):
        read_chart(with_dependency(zeros), SOURCE, Limits(unpacked_bytes=1024 * 1024))
    nested = chart_archive()
    for _ in range(9):
        nested = archive({"greeter/Chart.yaml": CHART_YAML, "greeter/charts/sub.tgz": nested})
    with pytest.raises(NotAChart, match="nested too deeply"):
        read_chart(nested, SOURCE)


def test_all_of_several_dependencies_with_one_name_are_checked() -> None:
    """Helm reads the first of them."""
    good = archive({"sub/Chart.yaml": CHART_YAML})
    bad = archive({"sub/Chart.yaml": CHART_YAML, "sub/l": link("l")})
    for packed in ((good, bad), (bad, good)):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in (
                ("greeter/Chart.yaml", CHART_YAML.encode()),
                *(("greeter/charts/sub.tgz", each) for each in packed),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        with pytest.raises(NotAChart, match="is a link"):
            read_chart(gzip.compress(buffer.getvalue()), SOURCE)


def test_a_long_reference_is_shortened_in_the_error() -> None:
    schema = orjson.dumps({"$ref": "http://" + "x" * 1_000_000}).decode()
    with pytest.raises(NotAChart) as caught:
        read_chart(chart_archive(schema=schema), SOURCE)
    assert len(str(caught.value)) < 500


def with_dependency(files: Mapping[str, str | bytes | tarfile.TarInfo]) -> bytes:
    packed = archive({"sub/Chart.yaml": CHART_YAML, **files})
    return archive({"greeter/Chart.yaml": CHART_YAML, "greeter/charts/sub.tgz": packed})


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked() -> None:
    limits = Limits(unpacked_bytes=1024 * 1024)
    bomb = archive({"greeter/Chart.yaml": CHART_YAML, "greeter/zeros": bytes(5 * 1024 * 1024)})
    assert len(bomb) < 10_000

    with pytest.raises(TooLarge, match="its files together has more than 1 MiB"):
        read_chart(bomb, SOURCE, limits)


def test_an_archive_with_too_many_bytes_or_files_is_refused() -> None:
    many = archive({"greeter/Chart.yaml": CHART_YAML, **{f"greeter/{n}": "" for n in range(9)}})

    with pytest.raises(TooLarge, match="the archive has more than 0 MiB"):
        read_chart(many, SOURCE, Limits(archive_bytes=10))
    with pytest.raises(TooLarge, match="it has more than 5 files"):
        read_chart(many, SOURCE, Limits(files=5))


def test_a_chart_can_be_embedded_in_an_object() -> None:
    source = "ControllerDeployment greeter, helm.rawChart"
    text = base64.b64encode(chart_archive()).decode()

    assert embedded_chart(text, source).name == "greeter"
    with pytest.raises(NotAChart, match="it is not base64 of an archive"):
        embedded_chart("&", source)
    with pytest.raises(NotAChart, match="its content is not gzip"):
        embedded_chart("YWJj", source)
