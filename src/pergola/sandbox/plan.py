"""What a sandbox's starter, its supervisor and its users say to each other, and in which files."""

from typing import Final, TypedDict

SOCKET: Final = "control.sock"
PLAN: Final = "plan.json"
STATE: Final = "state.json"
KUBECONFIG: Final = "kubeconfig"


class NodePlan(TypedDict):
    """What is needed to run the components in namespaces of their own.

    Attributes:
        name: the node's.
        address: the node's IP address.
        services: the range of addresses of Services.
        cgroups: the folders of its cgroups, which are removed in the end.
    """

    name: str
    address: str
    services: str
    cgroups: list[str]


class Plan(TypedDict):
    """What the supervisor has to know.

    Attributes:
        name: the sandbox's.
        lock: the inherited descriptor that holds the claim on the name.
        port: the inherited socket that keeps the API server's port; with a node, connections to it
            are forwarded to the same port inside, and else nothing reads it.
        starter: the inherited pidfd of the process that starts the sandbox; counts until ready.
        owner: the inherited pidfd of the process that the sandbox must not outlive; None: no such.
        commands: the command line of each component.
        server: the API server's URL.
        node: None: the components run as other processes of the machine do.
    """

    name: str
    lock: int
    port: int
    starter: int
    owner: int | None
    commands: dict[str, list[str]]
    server: str
    node: NodePlan | None
