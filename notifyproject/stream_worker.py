"""gunicorn's ASGI worker for streams, which do not end by themselves when they are asked to."""

from gunicorn.workers.gasgi import ASGIWorker


class StreamWorker(ASGIWorker):
    """Ends its streams at SIGTERM, in order, instead of waiting for them and then cutting them."""

    def handle_exit_signal(self) -> None:
        """Stop taking requests, and end the streams."""
        super().handle_exit_signal()
        self._ending = self.loop.create_task(self.asgi.stop())
