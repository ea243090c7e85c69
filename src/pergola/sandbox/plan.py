"""What a sandbox's starter, its supervisor and its users say to each other, and in which files."""

from typing import Final, TypedDict

SOCKET: Final = "control.sock"
PLAN: Final = "plan.json"
STATE: Final = "state.json"
KUBECONFIG: Final = "kubeconfig"


class Plan(TypedDict):
    """What the supervisor has to know.

    Attributes:
        name: the sandbox's.
        lock: the inherited descriptor that holds the claim on the name.
        port: the inherited socket that keeps the API server's port; nothing reads it.
        starter: the inherited pidfd of the process that starts the sandbox; counts until ready.
        owner: the inherited pidfd of the process that the sandbox must not outlive; None: no such.
        commands: the command line of each component.
        server: the API server's URL.
    """

    name: str
    lock: int
    port: int
    starter: int
    owner: int | None
    commands: dict[str, list[str]]
    server: str
