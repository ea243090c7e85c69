"""A node without root: it runs the pods of known programs as processes on loopback.

kwok simulates the other pods of a sandbox. A process has the flags and files of its pod, with the
paths of this machine, and a loopback address of its own. Replicas share processes: a second copy
would cost a core and show nothing. Processes reach Services by name through a tunnel, so that TLS
is verified end to end with the certificates of the cluster.

place       address, ports and files of a process
folders     where the volumes of a pod are
volumes     from a pod's volumes to files
programs    what differs from running in a container
process     one process, of a container
group       the processes of one workload
probe       whether a process is ready
pods        the controller
pod_status  the status that it reports
selection   which pods it runs
observe     what it reads
tunnel      the connection to Services
routes      the addresses behind Services
"""

from pergola.sandbox.process_node.node import (
    NodeSettings,
    ProcessNode,
    api_server_flags,
    process_node,
)
from pergola.sandbox.process_node.programs import (
    OWN_RESOURCE_MANAGER,
    Programs,
    built_program,
)

__all__ = [
    "OWN_RESOURCE_MANAGER",
    "NodeSettings",
    "ProcessNode",
    "Programs",
    "api_server_flags",
    "built_program",
    "process_node",
]
