"""AWS in tests: moto over HTTP, with its gaps corrected, and fixtures for tests of flows."""
