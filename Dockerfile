# One image for web, stream, worker and beat: they differ by their command.
FROM python:3.11-slim-bookworm
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=notifyproject.settings.production
WORKDIR /app
# requirements-tracing.txt for an image that can trace: docs/tracing.md
ARG REQUIREMENTS=requirements.txt
COPY requirements.txt requirements-tracing.txt ./
RUN pip install --no-cache-dir --require-hashes -r $REQUIREMENTS
COPY . .
# Before it runs: it writes none.
RUN python -m compileall -q .
RUN useradd --system --create-home notify \
 && SECRET_KEY=build ALLOWED_HOSTS=build MONGODB_URI=mongodb://build/build REDIS_URL=redis://build \
    PUBLIC_URL=https://build INBOX_SIGNING_KEY=another-only-for-collecting-static-files \
    FIELD_ENCRYPTION_KEYS=build:b25seS1mb3ItY29sbGVjdGluZy1zdGF0aWMtZmlsZXM= \
    python manage.py collectstatic --no-input \
 && chown -R notify /app/.data
USER notify
EXPOSE 8000
CMD ["gunicorn", "notifyproject.wsgi", "--worker-class", "notifyproject.serving.worker.WebWorker", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "8"]
