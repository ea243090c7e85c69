"""Strategies for objects as an API server stores them: odd, but of the right types."""
