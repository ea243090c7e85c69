"""Archives of charts, which are checked before Helm reads them."""

import base64
import gzip
import tarfile

import pytest

from pergola.charts import Limits, NotAChart, TooLarge, embedded_chart, read_chart
from pergola.testing.chart_files import archive, chart_archive, metadata

SOURCE = "oci://registry.example/greeter:1"
CHART_YAML = metadata()


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
