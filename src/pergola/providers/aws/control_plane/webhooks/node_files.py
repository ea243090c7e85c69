"""The files and units that nodes on AWS get besides those of gardenlet (spec 31 §8).

Their bytes are those of the original: nodes restart what depends on a file that differs.
"""

import json
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws.control_plane.webhooks.kubelet_unit import BINARIES, CONFIG_PATH

ECR_PROVIDER: Final = "ecr-credential-provider"
"""The program that gets credentials for AWS's container registry, and its image."""
MTU_UNIT: Final = "custom-mtu.service"
_MTU_SCRIPT: Final = f"{BINARIES}mtu-customizer.sh"
_EXECUTABLE: Final = 0o755

_MTU_UNIT_CONTENT: Final = f"""\
[Unit]
Description=Apply a custom MTU to network interfaces
After=network.target
Wants=network.target

[Install]
WantedBy=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={_MTU_SCRIPT}
"""
_MTU_SCRIPT_CONTENT: Final = """\
#!/bin/sh

for interface_path in $(find /sys/class/net  -type l -print)
do
\tinterface=$(basename ${interface_path})

\tif ls -l ${interface_path} | grep -q virtual
\tthen
\t\techo skipping virtual interface: ${interface}
\t\tcontinue
\tfi

\techo changing mtu of non-virtual interface: ${interface}
\tip link set dev ${interface} mtu 1460
done
"""
_ECR_CONFIG: Final[JsonObject] = {
    "kind": "CredentialProviderConfig",
    "apiVersion": "kubelet.config.k8s.io/v1",
    "providers": [
        {
            "name": ECR_PROVIDER,
            "matchImages": [
                "*.dkr.ecr.*.amazonaws.com",
                "*.dkr.ecr.*.amazonaws.com.cn",
                "*.dkr.ecr-fips.*.amazonaws.com",
                "*.dkr-ecr.*.on.aws",
            ],
            "defaultCacheDuration": "1h0m0s",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        }
    ],
}


def mtu_unit() -> JsonObject:
    """Return the unit that sets the MTU before the kubelet starts."""
    return {"name": MTU_UNIT, "command": "start", "enable": True, "content": _MTU_UNIT_CONTENT}


def mtu_script() -> JsonObject:
    """Return the script that sets the MTU of all interfaces that are not virtual."""
    return _text_file(_MTU_SCRIPT, _MTU_SCRIPT_CONTENT)


def ecr_files(image: str) -> list[JsonObject]:
    """Return the program that gets credentials for AWS's registry, and its configuration.

    Args:
        image: the image that has the program.
    """
    program = {"image": image, "filePathInImage": f"/bin/{ECR_PROVIDER}"}
    content = json.dumps(_ECR_CONFIG, separators=(",", ":"))
    return [
        _file(f"{BINARIES}{ECR_PROVIDER}", {"imageRef": program}),
        _text_file(CONFIG_PATH, content),
    ]


def _text_file(path: str, text: str) -> JsonObject:
    return _file(path, {"inline": {"encoding": "", "data": text}})


def _file(path: str, content: JsonObject) -> JsonObject:
    return {"path": path, "permissions": _EXECUTABLE, "content": content}
