"""The components of a Garden: one file or folder each; `catalog` lists them (spec 20 §13 to §16).

A component is a `Component`: data about it, and `render`, a pure function from a `Landscape` to
objects. Deploying, waiting and removing are implemented once, for all components.
"""
