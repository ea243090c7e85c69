"""`pergola network`: creates, watches and deletes Network resources."""
