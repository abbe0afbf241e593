{{- /* The programs: what they run, how they are probed, and how they end. */ -}}
{{- define "notifyproject.programs" -}}
web:
  command: [gunicorn, notifyproject.wsgi, --worker-class, notifyproject.serving.worker.WebWorker,
    --bind, "0.0.0.0:8000", --workers, "2", --threads, "8"]
  port: 8000
  readiness: /readyz
  graceSeconds: 45
  maxUnavailable: 0
stream:
  command: [gunicorn, notifyproject.asgi, --worker-class, notifyproject.serving.stream_worker.StreamWorker,
    --bind, "0.0.0.0:8002", --workers, "1", --graceful-timeout, "5"]
  port: 8002
  readiness: /healthz
  graceSeconds: 30
  maxUnavailable: 0
worker:
  command: [celery, -A, notifyproject, worker, --loglevel, INFO, --without-gossip, --without-mingle]
  health: worker
  graceSeconds: 40
  maxUnavailable: 1
urgent:
  command: [celery, -A, notifyproject, worker, --loglevel, INFO, --without-gossip, --without-mingle,
    --hostname, urgent@%h, --urgent]
  health: worker
  graceSeconds: 40
  maxUnavailable: 0
beat:
  command: [celery, -A, notifyproject, beat, --loglevel, WARNING, --pidfile, ""]
  health: beat
  graceSeconds: 30
  maxUnavailable: 1
{{- end -}}
