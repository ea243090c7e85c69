"""The command behaves as users of kubectl expect: its options, pipes, formats and errors."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.cli.cluster_options import ClusterOptionError, ClusterOptions, NamespaceOptions
from pergola.kube.client import Client
from pergola.kube.errors import Unreachable
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.manifests import manifest
from pergola.resource_manager.controllers.token_requestor import names
from pergola.testing.crds import install_extension_crds
from tests.support.objects import secret

PERGOLA = Path(sys.executable).with_name("pergola")
WHO_AM_I: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
STRANGER: JsonObject = {
    "token": "wrong",
    **dict.fromkeys(("client-certificate-data", "client-key-data")),
}


class Said(NamedTuple):
    """The result of a command line."""

    code: int
    out: str
    err: str


class Shell(NamedTuple):
    """A shell with a kubeconfig."""

    kubeconfig: Path
    folder: Path

    async def run(self, line: str, **environment: str) -> Said:
        """Run a line of bash, which fails if any part of a pipe does."""
        variables = {"KUBECONFIG": str(self.kubeconfig), **environment}
        return await asyncio.to_thread(self._run, line, variables)

    def _run(self, line: str, variables: Mapping[str, str]) -> Said:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env={"PATH": f"{PERGOLA.parent}:/usr/bin:/bin", "PYTHONPATH": _sources(), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def changed(self, part: str, **fields: JsonValue) -> "Shell":
        """Return a shell with other fields of the kubeconfig's cluster, user or context."""
        kubeconfig: Any = parse(self.kubeconfig.read_bytes())
        kubeconfig[f"{part}s"][0][part] |= fields
        path = self.folder / "kubeconfig"
        path.write_text(dump(kubeconfig))
        return Shell(path, self.folder)


def _sources() -> str:
    return ":".join(filter(None, sys.path))


@pytest.fixture
def shell(kubeconfig: Path, tmp_path: Path) -> Shell:
    return Shell(kubeconfig, tmp_path)


async def test_a_user_and_several_groups_are_impersonated(kubeconfig: Path) -> None:
    options = ClusterOptions(kubeconfig=kubeconfig, as_user="jane", as_group=("dev", "ops"))
    async with options.connect() as client:
        answer = await client.create(WHO_AM_I)
    info = answer["status"]["userInfo"]
    assert info["username"] == "jane"
    assert {"dev", "ops"} <= set(info["groups"])


async def test_the_rights_are_those_of_the_impersonated_user(shell: Shell) -> None:
    said = await shell.run("pergola garbage --as jane")
    assert (said.code, said.out) == (1, "")
    assert 'User "jane" cannot list resource' in said.err
    assert (await shell.run("pergola garbage --as jane --as-group system:masters")).code == 0


async def test_a_group_needs_a_user(kubeconfig: Path) -> None:
    with pytest.raises(ClusterOptionError, match="--as-group needs --as"):
        ClusterOptions(kubeconfig=kubeconfig, as_group=("dev",)).config()


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 30), ("5", 5), ("2m", 120), ("1m30s", 90), ("0", None), ("0s", None)]
)
def test_a_time_limit_has_the_syntax_of_kubectl(
    kubeconfig: Path, text: str, seconds: float | None
) -> None:
    config = ClusterOptions(kubeconfig=kubeconfig, request_timeout=text).config()
    assert config.request_seconds == seconds


@pytest.mark.parametrize("text", ["5x", "-1s", "soon"])
def test_a_wrong_time_limit_is_refused(kubeconfig: Path, text: str) -> None:
    with pytest.raises(ClusterOptionError, match=f'--request-timeout is "{text}"'):
        ClusterOptions(kubeconfig=kubeconfig, request_timeout=text).config()


async def test_the_time_limit_ends_requests_to_a_silent_server(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        silenced = shell.changed("cluster", server=f"http://127.0.0.1:{port}")
        options = ClusterOptions(kubeconfig=silenced.kubeconfig, request_timeout="100ms")
        async with asyncio.timeout(20), options.connect() as client:
            with pytest.raises(Unreachable, match="did not answer in time"):
                await client.list(CONFIG_MAP)


async def test_the_namespace_is_that_of_the_context(shell: Shell) -> None:
    moved = shell.changed("context", namespace="shop")
    assert NamespaceOptions(kubeconfig=moved.kubeconfig).chosen_namespace() == "shop"
    for line in ("why cm/none", "network-policy explain none"):
        assert "shop" in (await moved.run(f"pergola {line}")).err
        assert "mall" in (await moved.run(f"pergola {line} -n mall")).err


async def test_rejected_credentials_are_reported_with_server_user_and_next_step(
    shell: Shell,
) -> None:
    user = load(shell.kubeconfig).user
    stranger = shell.changed("user", **STRANGER)
    said = await stranger.run("pergola why cm/web")
    assert said.code == 1
    (sentence,) = said.err.splitlines()
    assert "does not accept the credentials of" in sentence
    assert f'user "{user}"' in sentence
    assert sentence.endswith("with --context or --kubeconfig")


async def test_an_unreachable_server_is_reported_with_server_user_and_next_step(
    shell: Shell,
) -> None:
    lost = shell.changed("cluster", server="https://127.0.0.1:1")
    for line in ("why", "why cm/web", "tokens"):
        said = await lost.run(f"pergola {line}")
        (sentence,) = said.err.splitlines()
        assert said.code == 1
        assert sentence.startswith("pergola: cannot reach https://127.0.0.1:1: connection refused")
        assert "check that the server runs" in sentence


async def test_a_pipe_gets_whole_lines_without_colour(
    shell: Shell, cluster_client: Client, namespace: str
) -> None:
    name = "n" * 120
    labels = {names.PURPOSE: names.PURPOSE_TOKEN_REQUESTOR, names.CLASS: "class"}
    asking = secret(namespace, name)
    asking["metadata"]["labels"] = labels
    await cluster_client.create(asking)
    said = await shell.run(f"pergola tokens -n {namespace}")
    head, row, *_ = said.out.splitlines()
    assert head.split("   ")[0] == "SECRET"
    assert row.startswith(f"{namespace}/{name} ")
    assert "\x1b" not in said.out


@pytest.mark.parametrize(
    "line", ["crds all", "aws iam-policy", "why cm/kube-root-ca.crt", "crds --help"]
)
async def test_a_reader_that_ends_early_ends_the_command_quietly(shell: Shell, line: str) -> None:
    said = await shell.run(f"pergola {line} | true")
    assert said.err == ""
    said = await shell.run(f"pergola {line} | head -n 1")
    assert (len(said.out.splitlines()), said.err) == (1, "")


async def test_a_reader_that_ends_early_ends_a_watch_quietly_at_the_next_change(
    shell: Shell, cluster_client: Client, namespace: str
) -> None:
    await install_extension_crds(cluster_client)
    key = Key(namespace, "demo")
    network = manifest(NETWORK.api_version, NETWORK.kind, key.name, namespace=namespace)
    spec = {"type": "calico", "podCIDR": "100.64.0.0/11", "serviceCIDR": "100.96.0.0/13"}
    await cluster_client.create({**network, "spec": spec})
    line = f"pergola network status network/demo -n {namespace} -o name -w | head -n 1"
    watching = asyncio.create_task(shell.run(line))
    changes = 0
    while not watching.done():
        status = {"status": {"ipFamilies": [], "providerStatus": {"changes": changes}}}
        await cluster_client.patch(NETWORK, key, status, subresource="status")
        changes += 1
        await asyncio.wait([watching], timeout=0.5)
    said = await watching
    assert (said.out, said.err) == ("network.extensions.gardener.cloud/demo\n", "")


async def test_every_format_shows_the_same_objects(
    shell: Shell, cluster_client: Client, namespace: str
) -> None:
    asking = secret(namespace, "asks")
    asking["metadata"]["labels"] = {names.PURPOSE: names.PURPOSE_TOKEN_REQUESTOR, names.CLASS: "c"}
    await cluster_client.create(asking)
    line = f"pergola tokens -n {namespace} -o"
    data = orjson.loads((await shell.run(f"{line} json")).out)
    assert parse((await shell.run(f"{line} yaml")).out.encode()) == data
    assert [row["name"] for row in data] == ["asks"]
    assert (await shell.run(f"{line} name")).out == "secret/asks\n"
    wide = (await shell.run(f"{line} wide")).out
    assert "LAST ERROR" in wide.splitlines()[0]
    said = await shell.run(f"{line} jsonpath")
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.err.splitlines()
    assert sentence.startswith('pergola: Invalid value "jsonpath" for -o. Choose from: ')
    assert '"table", "wide", "json", "yaml", "name"' in sentence
