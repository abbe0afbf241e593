# One image for web, stream, workers, and beat, which differ by their command.
FROM python:3.11-slim-bookworm
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=notifyproject.settings.production \
    HEARTBEAT_DIR=/tmp GUNICORN_CMD_ARGS=--no-control-socket
WORKDIR /app
# TRACING=yes for an image with traces: docs/guides/observe.md
# PROVIDERS=yes for more providers of email: docs/guides/email_providers.md
ARG TRACING PROVIDERS
COPY requirements.txt requirements-tracing.txt requirements-providers.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt ${TRACING:+-r requirements-tracing.txt} \
    ${PROVIDERS:+-r requirements-providers.txt}
COPY . .
# At build time, because the container writes no bytecode.
RUN python -m compileall -q .
# A number, by which Kubernetes sees that it isn't root.
RUN useradd --system --uid 10001 --user-group --create-home notify \
 && SECRET_KEY=build ALLOWED_HOSTS=build MONGODB_URI=mongodb://build/build REDIS_URL=redis://build \
    PUBLIC_URL=https://build INBOX_SIGNING_KEY=another-only-for-collecting-static-files \
    FIELD_ENCRYPTION_KEYS=build:b25seS1mb3ItY29sbGVjdGluZy1zdGF0aWMtZmlsZXM= \
    python manage.py collectstatic --no-input \
 && chown -R notify /app/.data
USER 10001:10001
EXPOSE 8000
CMD ["gunicorn", "notifyproject.wsgi", "--worker-class", "notifyproject.serving.worker.WebWorker", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "8"]
