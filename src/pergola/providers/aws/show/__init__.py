"""Drawings of a cluster's network: the location and the owner of each resource.

things  what there is, as a tree of things, each with its owner
tree    that tree as text for a terminal
svg     that tree as boxes inside of boxes
"""

from pergola.providers.aws.show.svg import svg
from pergola.providers.aws.show.things import Owner, Thing, control_plane, things
from pergola.providers.aws.show.tree import tree

__all__ = ["Owner", "Thing", "control_plane", "svg", "things", "tree"]
