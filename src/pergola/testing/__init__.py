"""Tests against a real API server, for this project and for others.

Installed with the package, the pytest plugin `pergola` offers the fixtures of
`pergola.testing.plugin`; nothing is started, and next to nothing imported, until a test asks for
one of them.
"""
