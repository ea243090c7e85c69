"""Files for a sandbox's components: certificates, tokens, kubeconfigs."""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pergola.pki import Authority, key_pair
from pergola.sandbox import components, directory
from pergola.sandbox.components import Layout
from pergola.sandbox.plan import KUBECONFIG

LIFETIME: Final = timedelta(days=365)  # certificates are not rotated: a sandbox lives for hours
_HOSTS: Final = (
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
)


class Identity(NamedTuple):
    """A user of the API server, authenticated by a static token."""

    file: str
    user: str
    group: str


# The controller manager acts for all of its controllers and needs more rights than its own role;
# the scheduler gets its rights by user name.
_IDENTITIES: Final = (
    Identity(KUBECONFIG, "admin", "system:masters"),
    Identity("kwok.kubeconfig", "kwok", "system:masters"),
    Identity(
        "kube-controller-manager.kubeconfig", "system:kube-controller-manager", "system:masters"
    ),
    Identity("kube-scheduler.kubeconfig", "system:kube-scheduler", "system:authenticated"),
)


def write_all(
    layout: Layout, identities: tuple[Identity, ...] = (), hosts: tuple[str, ...] = ()
) -> Authority:
    """Write all files with new keys and tokens, readable only by the user.

    Args:
        identities: extra users, in addition to those of the control plane.
        hosts: extra names and addresses of the API server, in addition to loopback.

    Returns:
        The authority that signed the certificates.
    """
    now = datetime.now(UTC)
    authority = Authority.create("pergola-sandbox", now, LIFETIME)
    serving = authority.issue_server("kube-apiserver", (*_HOSTS, *hosts), now, LIFETIME)
    accounts = key_pair()
    tokens = {identity: secrets.token_urlsafe(32) for identity in (*_IDENTITIES, *identities)}
    contents: dict[str, bytes | str] = {
        "ca.crt": authority.pair.public,
        "ca.key": authority.pair.private,
        "apiserver.crt": serving.public,
        "apiserver.key": serving.private,
        "service-account.pub": accounts.public,
        "service-account.key": accounts.private,
        "tokens.csv": "".join(_token_line(i, token) for i, token in tokens.items()),
        "kube-scheduler.yaml": components.scheduler_configuration(layout),
    }
    for identity, token in tokens.items():
        contents[identity.file] = _kubeconfig(layout, authority.pair.public, identity, token)
    for name, content in contents.items():
        directory.write(layout.directory / name, content)
    return authority


def _token_line(identity: Identity, token: str) -> str:
    return f'{token},{identity.user},{identity.user},"{identity.group}"\n'


def _kubeconfig(layout: Layout, ca: bytes, identity: Identity, token: str) -> str:
    name = layout.directory.name
    server = layout.server if identity.file == KUBECONFIG else layout.server_of_components
    return (
        "apiVersion: v1\n"
        "kind: Config\n"
        f"current-context: {name}\n"
        "clusters:\n"
        f"  - name: {name}\n"
        "    cluster:\n"
        f"      server: {server}\n"
        f"      certificate-authority-data: {base64.b64encode(ca).decode()}\n"
        "contexts:\n"
        f"  - name: {name}\n"
        "    context:\n"
        f"      cluster: {name}\n"
        f"      user: {identity.user}\n"
        "users:\n"
        f"  - name: {identity.user}\n"
        "    user:\n"
        f"      token: {token}\n"
    )
