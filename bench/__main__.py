"""`python -m bench`: the resource manager's table; `python bench/<name>.py` for the others."""

from bench.managed_resources import main

main()
