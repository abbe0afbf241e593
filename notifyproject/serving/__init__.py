"""The web server's workers: gunicorn worker classes that no slow client can hold up."""
