"""Judgements of the agents' own code about rendered settings (`pergola.sandbox.module`).

    [judgement] = check_cilium([{"config": {"mtu": "0"}, "labelFilter": "...", "labels": {}}])
    [judgement] = check_calico([{"environment": {"FELIX_BPFENABLED": "true"}}])

A judgement has `accepted`, and where there is something to report `error`, `warnings`, `unknown`
(names of settings that no program knows) and, for cilium, `identity` (labels that make it).
"""

import subprocess
from collections.abc import Sequence
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.sandbox import binaries
from pergola.sandbox.module import CALICO_CONFIG_CHECK, CILIUM_CONFIG_CHECK, CILIUM_REFERENCE
from pergola.sandbox.progress import Progress, silent

_PROGRAMS: Final = ("cilium-agent.md", "cilium-operator-generic.md")
_SECONDS: Final = 300.0


def check_cilium(questions: Sequence[JsonObject], progress: Progress = silent) -> list[JsonObject]:
    """Return the judgements of cilium's option parser and label filter, in the given order.

    Args:
        questions: the keys of `cilium-config` as `config`, the content of the file of label
            prefixes as `labelFilter`, and the `labels` of a pod.

    Raises:
        SandboxError: the program cannot be built.
        CalledProcessError: the program failed; a rejected configuration is not a failure.
    """
    parts = binaries.find((CILIUM_CONFIG_CHECK, CILIUM_REFERENCE), progress)
    references = [str(parts[CILIUM_REFERENCE] / name) for name in _PROGRAMS]
    return _ask([str(parts[CILIUM_CONFIG_CHECK]), *references], questions)


def check_calico(questions: Sequence[JsonObject], progress: Progress = silent) -> list[JsonObject]:
    """Return the judgements of the parsers of felix and typha, in the given order.

    Args:
        questions: the `environment` of a container each; the variables say which parser it is for.

    Raises:
        SandboxError: the program cannot be built.
        CalledProcessError: the program failed; a rejected configuration is not a failure.
    """
    parts = binaries.find((CALICO_CONFIG_CHECK,), progress)
    return _ask([str(parts[CALICO_CONFIG_CHECK])], questions)


def _ask(command: Sequence[str], questions: Sequence[JsonObject]) -> list[JsonObject]:
    lines = b"\n".join(orjson.dumps(question) for question in questions)
    answer = subprocess.run(
        command, input=lines, stdout=subprocess.PIPE, check=True, timeout=_SECONDS
    )
    found = [orjson.loads(line) for line in answer.stdout.splitlines()]
    if len(found) != len(questions):
        raise AssertionError(
            f"{command[0]} gave {len(found)} answers to {len(questions)} questions"
        )
    return found
