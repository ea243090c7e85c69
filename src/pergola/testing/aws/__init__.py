"""AWS in tests: moto over HTTP, its gaps closed, and what tests of flows share."""
