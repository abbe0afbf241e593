"""URL configuration: the console, and all routes of the API package."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

admin.autodiscover()
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", include("console.staff.sign_in")),
    path("admin/oidc/", include("console.staff.oidc")),
    # Django's "view on site": no object of the console has a page elsewhere.
    path("admin/r/<path:url>", admin.site.admin_view(admin.site.catch_all_view)),
    # The theme's search lowers the case of the text and caches what it finds for five minutes.
    path("admin/search/", include("console.command_palette")),
    path("admin/refresh/", include("console.home")),
    path("admin/alerts/", include("console.own_alerts")),
    path("admin/send/", include("console.sending.page")),
    path("admin/files/", include("console.files.urls")),
    path("admin/", admin.site.urls),
    path("", include("api.urls")),
]

handler400 = "api.http.problems.bad_request_page"
handler403 = "api.http.problems.forbidden_page"
handler404 = "api.http.problems.not_found_page"
handler500 = "api.http.problems.server_error_page"
