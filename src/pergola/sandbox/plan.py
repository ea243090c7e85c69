"""The files and data that a sandbox's starter, supervisor and users exchange."""

from typing import Final, TypedDict

SOCKET: Final = "control.sock"
PLAN: Final = "plan.json"
STATE: Final = "state.json"
KUBECONFIG: Final = "kubeconfig"


class NodePlan(TypedDict):
    """Parameters for running the components in separate namespaces.

    Attributes:
        name: the node's name.
        address: the node's IP address.
        port: the API server's port in the node's network.
        services: the address range of Services.
        gateway: the address to which pods send all packets.
        cgroups: the folders of its cgroups, which are removed at the end.
    """

    name: str
    address: str
    port: int
    services: str
    gateway: str
    cgroups: list[str]


class Plan(TypedDict):
    """Parameters of the supervisor.

    Attributes:
        name: the sandbox's name.
        lock: the inherited descriptor that holds the claim on the name.
        port: the inherited socket that reserves the API server's port; with a node, connections to
            it are forwarded inside; otherwise nothing reads it.
        starter: the inherited pidfd of the process that starts the sandbox; watched until ready.
        owner: the inherited pidfd of the process that the sandbox must not outlive; None: no owner.
        commands: the command line of each component.
        server: the API server's URL.
        node: None: the components run in the machine's namespaces.
    """

    name: str
    lock: int
    port: int
    starter: int
    owner: int | None
    commands: dict[str, list[str]]
    server: str
    node: NodePlan | None
