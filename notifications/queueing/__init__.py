"""Wake-up messages, the fair queue, and backpressure."""
