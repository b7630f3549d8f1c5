"""Only what sending a receipt and receiving its result needs; the part about mail is what you copy."""

import os
from pathlib import Path

# Mail. DEFAULT_FROM_EMAIL is an address of a domain that the account has verified.
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = os.environ.get("EMAIL_HOST", "mail.example.com")
EMAIL_PORT = int(os.environ.get("EMAIL_PORT", "587"))
EMAIL_HOST_USER = os.environ["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD = os.environ["EMAIL_HOST_PASSWORD"]
# `postroad dev` has no certificate: EMAIL_USE_TLS=no there, and nowhere else.
EMAIL_USE_TLS = os.environ.get("EMAIL_USE_TLS", "yes") == "yes"
EMAIL_TIMEOUT = 30
DEFAULT_FROM_EMAIL = "Shop <hello@example.com>"

# Webhooks, signed with this secret.
POSTROAD = {"webhook_secret": os.environ.get("POSTROAD_WEBHOOK_SECRET", "")}

SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "shop.urls"
MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
    }
]
