"""The rules of admission for Gardens, which webhooks, the operator and `garden check` apply."""
