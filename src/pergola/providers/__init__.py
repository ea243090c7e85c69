"""The extensions that Pergola ships: networking (calico, cilium) and AWS.

Not for: the SDK that they are built with, which is `pergola.extensions`.
"""
