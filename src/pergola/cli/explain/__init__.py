"""`pergola explain`: what the webhooks would change, and why."""
