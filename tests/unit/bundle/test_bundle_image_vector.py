from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.bundle.errors import BundleError
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.image_vector import (
    OVERWRITE,
    OWN,
    REGISTRY,
    ImageNotFound,
    ImageVector,
    ImageVectorError,
)
from pergola.bundle.versions import VersionError

DIGEST = "sha256:" + "a" * 64
PAUSE = """
images:
- name: pause
  sourceRepository: github.com/kubernetes/kubernetes
  repository: registry.k8s.io/pause
  tag: "3.4"
  targetVersion: 1.30.x
  resourceId: {name: pause}
  labels: [{name: cve, value: {network: private}}]
- name: pause
  ref: registry.k8s.io/pause:3.5
  targetVersion: ">= 1.31"
- name: pause
  repository: registry.k8s.io/pause
  tag: "3.1"
"""
IMAGES = ImageVector.load(PAUSE)


def vector(*entries: str) -> ImageVector:
    return ImageVector.load(document(*entries))


def document(*entries: str) -> str:
    return "images:\n" + "".join(f"- {{{entry}}}\n" for entry in entries)


def findings(text: str) -> list[tuple[str, str]]:
    with pytest.raises(ImageVectorError) as raised:
        ImageVector.load(text)
    return [(cause.field, cause.message) for cause in raised.value.causes]


@pytest.mark.parametrize(
    ("version", "reference"),
    [
        ("1.30.7", "registry.k8s.io/pause:3.4"),
        ("v1.30.0", "registry.k8s.io/pause:3.4"),
        ("1.31.0", "registry.k8s.io/pause:3.5"),
        ("1.36.2-gke.4", "registry.k8s.io/pause:3.5"),
        ("1.29.1", "registry.k8s.io/pause:3.1"),
        ("", "registry.k8s.io/pause:3.1"),
    ],
)
def test_entries_are_selected_by_version(version: str, reference: str) -> None:
    assert IMAGES.find("pause", version=version) == reference


def test_an_entry_with_versions_takes_precedence_at_any_position() -> None:
    all_versions = "name: a, repository: r, tag: all"
    certain = 'name: a, repository: r, tag: new, targetVersion: ">= 1.30"'
    for entries in ((all_versions, certain), (certain, all_versions)):
        assert vector(*entries).find("a", version="1.31.0") == "r:new"
        assert vector(*entries).find("a", version="1.29.0") == "r:all"


def test_both_versions_must_match_and_two_matches_outweigh_one() -> None:
    images = vector(
        'name: a, repository: r, tag: target, targetVersion: ">= 1.30"',
        'name: a, repository: r, tag: runtime, runtimeVersion: ">= 1.28"',
        'name: a, repository: r, tag: both, targetVersion: ">= 1.30", runtimeVersion: ">= 1.31"',
    )
    assert images.find("a", version="1.30.0", runtime_version="1.31.0") == "r:both"
    assert images.find("a", version="1.30.0", runtime_version="1.30.0") == "r:target"
    assert images.find("a", version="1.29.0", runtime_version="1.30.0") == "r:runtime"
    assert images.find("a", version="1.30.0") == "r:target"


def test_the_first_of_equally_good_entries_is_selected() -> None:
    images = vector(
        'name: a, repository: r, tag: one, targetVersion: ">= 1.28"',
        'name: a, repository: r, tag: two, targetVersion: ">= 1.30"',
    )
    assert images.find("a", version="1.31.0") == "r:one"


def test_entries_are_selected_by_architecture_and_default_to_all() -> None:
    images = vector(
        "name: a, repository: r, tag: any",
        "name: a, repository: r, tag: arm, architectures: [arm64]",
        "name: b, repository: r, tag: intel, architectures: [amd64]",
    )
    assert images.find("a") == "r:any"
    assert images.find("a", architecture="arm64") == "r:arm"
    assert images.find("b", architecture="") == "r:intel"
    with pytest.raises(ImageNotFound, match=r'no image "b" on arm64 in .* there is .*amd64'):
        images.find("b", architecture="arm64")


@pytest.mark.parametrize(
    ("tag", "reference"),
    [
        ("v1.2.3", "r.io/a:v1.2.3"),
        (DIGEST, f"r.io/a@{DIGEST}"),
        (f"v1.2.3@{DIGEST}", f"r.io/a:v1.2.3@{DIGEST}"),
    ],
)
def test_a_tag_may_be_or_include_a_digest(tag: str, reference: str) -> None:
    assert vector(f'name: a, repository: r.io/a, tag: "{tag}"').find("a") == reference


def test_an_image_without_a_tag_has_the_version_of_the_cluster() -> None:
    images = vector("name: kube-proxy, repository: registry.k8s.io/kube-proxy")
    for version in ("1.31.2", "v1.31.2"):
        found = images.find("kube-proxy", version=version)
        assert found == "registry.k8s.io/kube-proxy:v1.31.2"
    with pytest.raises(ImageNotFound, match="has no tag"):
        images.find("kube-proxy")


def test_the_error_about_an_unknown_name_suggests_similar_ones() -> None:
    images = vector("name: calico-node, ref: 'r:1'", "name: typha, ref: 'r:1'")
    with pytest.raises(
        ImageNotFound, match=r'no image "calico-nod" .*: there is only calico-node;'
    ):
        images.find("calico-nod")


def test_the_error_about_an_unsupported_version_lists_all_candidates() -> None:
    images = vector(
        "name: a, ref: 'r:1', targetVersion: 1.30.x",
        "name: a, ref: 'r:1', runtimeVersion: '< 1.30', architectures: [arm64]",
    )
    with pytest.raises(ImageNotFound) as raised:
        images.find("a", version="1.31.2", runtime_version="1.32.0")
    text = str(raised.value)
    assert 'no image "a" for Kubernetes 1.31.2 running on Kubernetes 1.32.0 on amd64' in text
    assert 'images[0] (targetVersion "1.30.x", amd64, arm64)' in text
    assert 'images[1] (runtimeVersion "< 1.30", arm64)' in text
    assert "IMAGEVECTOR_OVERWRITE" in text


def test_an_invalid_version_is_refused_even_if_no_entry_needs_it() -> None:
    with pytest.raises(VersionError, match='"new" is not a version'):
        vector("name: a, ref: 'r:1'").find("a", version="new")


def test_an_override_replaces_field_by_field() -> None:
    images = IMAGES.override(
        document("name: pause, repository: mirror/pause, targetVersion: 1.30.x")
    )
    assert images.find("pause", version="1.30.1") == "mirror/pause:3.4"
    assert images.find("pause", version="1.31.0") == "registry.k8s.io/pause:3.5"
    assert images.find("pause") == "registry.k8s.io/pause:3.1"
    assert IMAGES.find("pause", version="1.30.1") == "registry.k8s.io/pause:3.4"


def test_a_ref_replaces_repository_and_tag_and_a_repository_replaces_a_ref() -> None:
    images = IMAGES.override(
        document(
            "name: pause, ref: 'mirror/pause:new', targetVersion: 1.30.x",
            "name: pause, repository: mirror/pause, tag: newer, targetVersion: '>= 1.31'",
        )
    )
    assert images.find("pause", version="1.30.1") == "mirror/pause:new"
    assert images.find("pause", version="1.31.0") == "mirror/pause:newer"


def test_versions_in_different_notations_are_equal() -> None:
    images = IMAGES.override(document("name: pause, tag: other, targetVersion: ~1.30"))
    assert images.find("pause", version="1.30.1") == "registry.k8s.io/pause:other"


def test_older_files_have_the_range_in_version() -> None:
    images = IMAGES.override(
        document(
            "name: pause, repository: mirror/pause, version: 1.30.x",
            "name: pause, ref: 'mirror/pause:3.5', version: '>= 1.31'",
        )
    )
    assert images.find("pause", version="1.30.1") == "mirror/pause:3.4"
    assert images.find("pause", version="1.31.0") == "mirror/pause:3.5"


def test_a_version_that_is_not_a_range_only_describes_the_image() -> None:
    images = vector(f"name: a, repository: r, tag: '{DIGEST}', version: v1.2.3")
    assert images.find("a") == images.find("a", version="1.30.0") == f"r@{DIGEST}"


def test_an_override_without_architectures_changes_all_entries_of_its_versions() -> None:
    images = vector(
        "name: a, repository: r, tag: '1', architectures: [amd64]",
        "name: a, repository: r, tag: '2', architectures: [arm64]",
    ).override(document("name: a, repository: mirror"))
    assert images.find("a") == "mirror:1"
    assert images.find("a", architecture="arm64") == "mirror:2"


def test_an_override_with_architectures_changes_only_their_entries() -> None:
    images = vector("name: a, repository: r, tag: '1'").override(
        document("name: a, repository: mirror, tag: '2', architectures: [arm64]")
    )
    assert images.find("a") == "r:1"
    assert images.find("a", architecture="arm64") == "mirror:2"


def test_a_new_entry_of_an_override_precedes_equally_good_ones() -> None:
    images = vector("name: a, ref: 'r:1', targetVersion: '>= 1.28'").override(
        document(
            "name: b, ref: 'r:2'",
            "name: a, ref: 'r:3', targetVersion: '>= 1.30'",
        )
    )
    assert images.find("b") == "r:2"
    assert images.find("a", version="1.30.0") == "r:3"
    assert images.find("a", version="1.29.0") == "r:1"


def test_an_empty_override_changes_nothing() -> None:
    assert IMAGES.override(None) is IMAGES
    assert IMAGES.override("images: []").sources == IMAGES.sources


@given(st.sampled_from(["", "1.29.0", "1.30.0", "1.31.0"]))
def test_overriding_a_file_with_itself_changes_nothing(version: str) -> None:
    same = IMAGES.override(PAUSE)
    assert same.find("pause", version=version) == IMAGES.find("pause", version=version)


@pytest.mark.parametrize(
    ("entry", "finding"),
    [
        ("name: pause, tag: new, targetVersion: '>= 1.31'", r"images\[0\]\.tag: .* has a ref"),
        (
            "name: pause, repository: mirror, targetVersion: '>= 1.31'",
            r"images\[0\]\.tag: .*replaces the ref of pause, and with it the tag",
        ),
        ("name: other, tag: new", r"images\[0\]\.repository: .*other needs a repository"),
    ],
)
def test_an_override_that_leaves_no_image_is_refused(entry: str, finding: str) -> None:
    with pytest.raises(ImageVectorError, match=finding):
        IMAGES.override(document(entry), "overwrite.yaml")


def test_every_finding_of_a_file_is_reported() -> None:
    found = findings(
        document(
            "repository: r",
            "name: a, ref: r, repository: r",
            "name: b, repository: 'r:1', tag: latest",
            "name: c, repository: r, tag: 3.10, targetVersion: '>= new'",
            "name: d, ref: 'r:1', architectures: [arm64, s390x, arm64], targetVerison: 1.30.x",
        )
        + "- nothing\n"
    )
    assert [path for path, _ in found] == [
        "images[0].name",
        "images[1].ref",
        "images[1].ref",
        "images[2].repository",
        "images[2].tag",
        "images[3].tag",
        "images[3].targetVersion",
        "images[4].targetVerison",
        "images[4].architectures[1]",
        "images[4].architectures[2]",
        "images[5]",
    ]
    assert "did you mean targetVersion?" in dict(found)["images[4].targetVerison"]
    assert "put it in quotes" in dict(found)["images[3].tag"]


def test_duplicate_entries_are_refused() -> None:
    text = document(
        "name: a, ref: 'r:1', targetVersion: 1.30.x, architectures: [arm64, amd64]",
        "name: a, ref: 'r:1', targetVersion: ~1.30",
        "name: a, ref: 'r:2', targetVersion: ~1.30, architectures: [amd64, arm64]",
    )
    assert [path for path, _ in findings(text)] == ["images[2].name"]


def test_an_entry_without_a_repository_is_refused() -> None:
    assert [path for path, _ in findings(document("name: a, tag: '1'"))] == ["images[0].repository"]


def test_fields_of_later_versions_are_ignored() -> None:
    assert vector("name: a, ref: 'r:1', signature: x").find("a") == "r:1"


@pytest.mark.parametrize("text", ["", "[]", "images: {}", "image: []"])
def test_a_file_that_is_not_an_image_vector_is_refused(text: str) -> None:
    assert [path for path, _ in findings(text)] == ["images"]


def test_broken_yaml_is_reported_with_its_line() -> None:
    with pytest.raises(ImageVectorError, match=r"images.yaml: file: line 3"):
        ImageVector.load("images:\n- {", "images.yaml")


def test_an_environment_variable_names_the_override(tmp_path: Path) -> None:
    package, override = tmp_path / "images.yaml", tmp_path / "overwrite.yaml"
    package.write_text(PAUSE)
    override.write_text(document("name: pause, repository: mirror/pause"))
    plain = ImageVector.from_environment(package, {})
    assert plain.find("pause") == "registry.k8s.io/pause:3.1"
    environment = {"IMAGEVECTOR_OVERWRITE": str(override)}
    overridden = ImageVector.from_environment(package, environment)
    assert overridden.find("pause") == "mirror/pause:3.1"


def test_a_missing_override_is_reported(tmp_path: Path) -> None:
    package = tmp_path / "images.yaml"
    package.write_text(PAUSE)
    environment = {"IMAGEVECTOR_OVERWRITE": str(tmp_path / "gone.yaml")}
    with pytest.raises(
        BundleError, match=r"gone\.yaml, which IMAGEVECTOR_OVERWRITE names: No such"
    ):
        ImageVector.from_environment(package, environment)


def test_findings_of_an_override_name_its_file(tmp_path: Path) -> None:
    with pytest.raises(ImageVectorError, match=r"^over\.yaml: images\[0\]\.name: Required value"):
        IMAGES.override(document("tag: x"), "over.yaml")


@pytest.mark.parametrize(
    ("entry", "version"),
    [
        ("name: a, repository: r.example.org:5000/a, tag: v1.2.3", "v1.2.3"),
        (f'name: a, repository: r.example.org:5000/a, tag: "{DIGEST}"', ""),
        (f'name: a, repository: r.example.org/a, tag: "{DIGEST}", version: v1.2.3', "v1.2.3"),
        (f'name: a, ref: "r.example.org:5000/a@{DIGEST}"', ""),
        (f'name: a, ref: "r.example.org/a@{DIGEST}", version: v1.2.3', "v1.2.3"),
        (f'name: a, ref: "r.example.org/a:v1.2.3@{DIGEST}"', "v1.2.3"),
        ("name: a, repository: r.example.org/a", "v1.31.0"),
    ],
)
def test_the_version_of_an_image_is_that_of_its_entry_or_its_tag(entry: str, version: str) -> None:
    assert vector(entry).version_of("a", version="1.31.0") == version


def test_images_come_from_the_registry_with_their_copies(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(PAUSE)
    override = tmp_path / "override.yaml"
    override.write_text(document("name: pause, repository: example.org/own, tag: '1'"))
    copies = {REGISTRY: "registry.example:5000/copies/"}
    images = ImageVector.from_environment(file, copies)
    assert images.find("pause", version="1.30.1") == (
        "registry.example:5000/copies/registry.k8s.io/pause:3.4"
    )
    assert images.find("pause", version="1.31.0") == (
        "registry.example:5000/copies/registry.k8s.io/pause:3.5"
    )
    overridden = ImageVector.from_environment(file, {**copies, OVERWRITE: str(override)})
    assert overridden.find("pause") == "example.org/own:1"


@pytest.mark.parametrize(
    "image", ["a.example:5000/pergola:dev", f"a.example/pergola@{DIGEST}", "pergola:1"]
)
def test_the_image_of_pergola_itself_is_the_one_that_the_process_runs_from(
    image: str, tmp_path: Path
) -> None:
    file, override = tmp_path / "images.yaml", tmp_path / "overwrite.yaml"
    file.write_text(f"{PAUSE}- name: manager\n  repository: placeholder\n  tag: '1'\n")
    override.write_text(document("name: manager, repository: example.org/own, tag: '2'"))
    environment = {OWN: image, REGISTRY: "copies.example"}
    images = ImageVector.from_environment(file, environment, own="manager")
    assert images.find("manager") == image
    assert images.find("pause") == "copies.example/registry.k8s.io/pause:3.1"
    environment[OVERWRITE] = str(override)
    overridden = ImageVector.from_environment(file, environment, own="manager")
    assert overridden.find("manager") == "example.org/own:2"
    without = ImageVector.from_environment(file, {}, own="manager")
    assert without.find("manager") == "placeholder:1"


@pytest.mark.parametrize("registry", ["https://registry.example", "a b", "/copies", "REGISTRY"])
def test_what_is_no_registry_is_refused(registry: str) -> None:
    with pytest.raises(BundleError, match="name a host with a port or a path"):
        IMAGES.copied_to(registry)


@pytest.mark.parametrize(
    "image",
    [
        "registry.example/pergola",
        "https://registry.example/pergola:1",
        "a b:1",
        "Pergola:1",
        "pergola:",
        "pergola@sha256:12",
        f"pergola:1@{DIGEST}\n",
    ],
)
def test_what_is_no_image_with_a_tag_or_digest_is_refused(image: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text("images: [{name: manager, repository: placeholder, tag: '1'}]")
    with pytest.raises(BundleError, match=r"^PERGOLA_IMAGE is .*: name an image with its tag or"):
        ImageVector.from_environment(file, {OWN: image}, own="manager")


@given(
    host=st.sampled_from(["", "localhost/", "registry.example:5000/", "[fd00::1]:443/"]),
    path=st.from_regex(r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+){0,2}", fullmatch=True),
    tag=st.from_regex(r":[a-z0-9_][a-zA-Z0-9_.-]{0,127}", fullmatch=True),
    digest=st.sampled_from(["", f"@{DIGEST}"]),
)
def test_every_exact_reference_is_accepted_and_keeps_its_parts(
    host: str, path: str, tag: str, digest: str
) -> None:
    text = f"{host}{path}{tag}{digest}"
    assert ImageReference.is_exact(text)
    assert ImageReference.parse(text) == (f"{host}{path}", tag[1:], digest[1:])
    assert not ImageReference.is_exact(f"{text} ")
    assert not ImageReference.is_exact(f"{host}{path}")


@given(st.text(max_size=40))
def test_any_text_is_an_exact_reference_or_not(text: str) -> None:
    if ImageReference.is_exact(text):
        found = ImageReference.parse(text)
        assert found.repository
        assert found.is_pinned or found.tag == "latest"
