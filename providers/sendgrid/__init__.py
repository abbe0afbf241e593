"""Email by SendGrid."""
