"""The form, the receipt, and the webhook."""

from django.urls import path

from shop import views

urlpatterns = [
    path("", views.show_order),
    path("receipt", views.send_receipt),
    path("hooks/postroad", views.mail_event),
]
