"""What all resources share: bodies, parameters, problems, paging, rate limits."""
