"""Every URL the web answers to."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerView

from api import health, metrics
from api.openapi.document import OpenAPIDocument
from api.unsubscribe import Resubscribe, Unsubscribe
from api.webhooks import SendGridWebhook, WhatsAppWebhook

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/second-factor/", include("console.sign_in")),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/schema", OpenAPIDocument.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include("api.urls")),
    path("webhooks/sendgrid", SendGridWebhook.as_view(), name="webhook-sendgrid"),
    path("webhooks/whatsapp", WhatsAppWebhook.as_view(), name="webhook-whatsapp"),
    path("u/<str:token>", Unsubscribe.as_view(), name="unsubscribe"),
    path("u/<str:token>/undo", Resubscribe.as_view(), name="resubscribe"),
]

handler400 = "api.http.problems.bad_request_page"
handler403 = "api.http.problems.forbidden_page"
handler404 = "api.http.problems.not_found_page"
handler500 = "api.http.problems.server_error_page"
