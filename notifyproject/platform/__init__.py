"""Technical services for all packages: Valkey, broker, caches, encryption, logs, tracing."""
