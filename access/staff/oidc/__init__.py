"""Sign-in to the console by OpenID Connect: provider, tokens, accounts, and sessions."""
