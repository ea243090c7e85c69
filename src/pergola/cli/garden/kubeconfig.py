"""`pergola garden kubeconfig` and `pergola garden token`: access to the virtual cluster."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.access import observe_access
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, JsonValue

API_VERSION: Final = "client.authentication.k8s.io/v1"
_KUBECONFIG: Final = "KUBECONFIG"
_PROGRAM: Final = "pergola"
Flag = Annotated[bool, Parameter(negative="")]


def kubeconfig(
    *,
    exec: Flag = False,  # noqa: A002 - the option's name
    internal: Flag = False,
    address: str = "",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Print a kubeconfig for administrators of the virtual cluster.

    Its token is valid for 12 hours at most: print it again later, or use --exec. Only the current
    user of the runtime cluster is used, who must be allowed to read Secrets in namespace garden.

    Parameters
    ----------
    exec
        Put in no token, but a call of `pergola garden token`, which reads the current one whenever
        a client needs it. It reads the same runtime cluster as this command.
    internal
        Use the address of the virtual cluster in the runtime cluster, for clients in its pods.
    address
        Connect to this host or IP address, such as that of the gateway, as long as DNS does not
        know the name of the server. Certificates are still those of the name. A gateway that
        terminates TLS, as is the default, rejects such requests with the status 421: add the name
        to /etc/hosts instead.
    """
    from pergola.kube.yaml import dump

    access = asyncio.run(observe_access(cluster, internal=internal))
    document = at_address(access.document, address) if address else access.document
    if exec:
        user = _exec_user(cluster, internal=internal)
        say(with_user(document, user), end="")
        return
    say(dump(document), end="")
    if access.expires is not None:
        until = f"{access.expires:%Y-%m-%d %H:%M} UTC"
        say(f"the token is valid until {until}; --exec reads it anew", file=sys.stderr)


def token(*, internal: Flag = False, cluster: ClusterOptions = DEFAULT_CLUSTER) -> None:
    """Print the current token of the virtual cluster, as kubectl's credential plugins do.

    Parameters
    ----------
    internal
        Print the token of the kubeconfig for clients in the runtime cluster.
    """
    import orjson

    access = asyncio.run(observe_access(cluster, internal=internal))
    status: JsonObject = {"token": access.token}
    if access.expires is not None:
        status["expirationTimestamp"] = f"{access.expires:%Y-%m-%dT%H:%M:%SZ}"
    credential = {"apiVersion": API_VERSION, "kind": "ExecCredential", "status": status}
    say(orjson.dumps(credential, option=orjson.OPT_INDENT_2).decode())


def with_user(document: "JsonObject", user: "JsonObject") -> str:
    """Return a kubeconfig with another user in place of those with tokens."""
    from pergola.api.objects import maps_at
    from pergola.kube.yaml import dump

    users: list[JsonValue] = [
        {"name": each.get("name"), "user": user} for each in maps_at(document, "users")
    ]
    return dump({**document, "users": users})


def at_address(document: "JsonObject", address: str) -> "JsonObject":
    """Return a kubeconfig that connects to another address, with the original name in TLS."""
    from pergola.api.objects import map_at, maps_at

    def moved(cluster: "JsonObject") -> "JsonObject":
        server = urlsplit(str(cluster.get("server")))
        host = f"[{address}]" if ":" in address else address
        port = f":{server.port}" if server.port else ""
        name = cluster.get("tls-server-name") or server.hostname
        return {**cluster, "server": f"https://{host}{port}", "tls-server-name": name}

    clusters: list[JsonValue] = [
        {**each, "cluster": moved(map_at(each, "cluster"))}
        for each in maps_at(document, "clusters")
    ]
    return {**document, "clusters": clusters}


def _exec_user(cluster: ClusterOptions, *, internal: bool) -> "JsonObject":
    """Return the user whose token `pergola garden token` prints.

    The kubeconfig of the runtime cluster is pinned: clients of the virtual cluster often have
    theirs in KUBECONFIG, which the plugin inherits.
    """
    from pergola.kube.kubeconfig import files_of

    files = [str(file.resolve()) for file in files_of(cluster.kubeconfig, os.environ)]
    arguments: list[JsonValue] = ["garden", "token"]
    if files:
        arguments += ["--context", cluster.config().context]
    if cluster.as_user:
        arguments += ["--as", cluster.as_user]
    for group in cluster.as_group:
        arguments += ["--as-group", group]
    if internal:
        arguments.append("--internal")
    return {
        "exec": {
            "apiVersion": API_VERSION,
            "command": _PROGRAM if shutil.which(_PROGRAM) else str(Path(sys.argv[0]).resolve()),
            "args": arguments,
            "env": [{"name": _KUBECONFIG, "value": os.pathsep.join(files)}],
            "interactiveMode": "IfAvailable",
            "installHint": "install pergola, or print the kubeconfig again without --exec",
        }
    }
