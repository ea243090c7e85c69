"""The extensions that Pergola ships: networking (calico, cilium) and AWS.

Not for: the SDK that they are written with, which is `pergola.extensions`.
"""
