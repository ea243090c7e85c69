"""Pergola: a Kubernetes control plane in Python."""

from importlib.metadata import version

__version__ = version("pergola")
