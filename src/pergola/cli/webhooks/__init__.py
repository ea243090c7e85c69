"""`pergola webhooks`: print, apply and check how webhooks are registered.

`app` has the commands, `registration` renders and writes webhook configurations, and `checking`
compares them with a cluster and a server.
"""
