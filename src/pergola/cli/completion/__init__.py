"""Completion of command lines: scripts for shells, which ask a hidden command for candidates."""
