"""`pergola support-bundle`: an archive for support, without values of Secrets."""
