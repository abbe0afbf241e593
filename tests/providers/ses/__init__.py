"""Amazon SES: requests, answers, events, and the sandbox."""
