"""SendGrid's v3 API and its event webhook."""
