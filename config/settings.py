"""The one settings module: everything that differs between installations comes from the environment.

`.env.example` lists every variable; `config/checks.py` says in words which of them is wrong."""

import os
from pathlib import Path
from typing import Any

from django.utils.csp import CSP

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.path("DATA_DIR", BASE_DIR / ".data")

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.text("SECRET_KEY")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("TRUSTED_ORIGINS")
ENVIRONMENT_NAME = env.text("ENVIRONMENT", "production")

# Comma-separated `id:base64 of 32 bytes`; the first encrypts, the others still decrypt.
MASTER_KEYS = env.words("MASTER_KEYS")

# Provider, asset and output addresses on loopback or private networks: for the simulator only.
ALLOW_PRIVATE_ADDRESSES = env.flag("ALLOW_PRIVATE_ADDRESSES")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "catalog",
    "health",
    "billing",
    "dispatch",
    "config",
]

MIDDLEWARE = [
    "config.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.ConsoleGZipMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "config.middleware.PersonalZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "config.middleware.NoNulMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.middleware.SignedOutFragmentMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "dispatch.views.shell.shell",
            ],
        },
    }
]

DATABASES = {
    "default": {
        **env.database(os.environ.get("DATABASE_URL", "postgresql:///frameyard"), prepare_threshold=3),
        # No psycopg pool: django-q2 forks, and forked workers would share its sockets.
        "CONN_MAX_AGE": env.number("DATABASE_CONNECTION_MAX_AGE_S", 300),
        "CONN_HEALTH_CHECKS": True,
    }
}

# People and browsers

LOGIN_URL = "/console/login/"
LOGIN_REDIRECT_URL = "/console/"
LOGOUT_REDIRECT_URL = "/console/login/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

BEHIND_TLS = env.flag("BEHIND_TLS", default=True)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = BEHIND_TLS
SECURE_HSTS_SECONDS = 31_536_000 if BEHIND_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = BEHIND_TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("TRUST_PROXY_HEADERS") else None
SECURE_REDIRECT_EXEMPT = [r"^live$", r"^ready$"]
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "config" / "locale"]
FORMAT_MODULE_PATH = "config.formats"
USE_TZ = True
TIME_ZONE = "UTC"
# Of pages and exports of money, whatever zone a person reads the other pages in.
REPORTING_TIME_ZONE = env.time_zone("REPORTING_TIME_ZONE", "UTC")

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
MEDIA_DIR = env.path("MEDIA_DIR", DATA_DIR / "media")

# The customer API

# Refused before it is read: a body is small, media goes by reference.
DATA_UPLOAD_MAX_MEMORY_SIZE = env.number("API_MAX_BODY_BYTES", 262_144, minimum=1024)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["billing.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["dispatch.api.bodies.StorableJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api.problem_response",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Frameyard customer API",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
}

# Workers: a doorbell, the rows are the truth


def _cluster(workers: int, timeout_s: int) -> dict[str, object]:
    """Settings of one django-q2 cluster; why each differs from the default: docs/operations.md."""
    return {
        "workers": workers,
        "timeout": timeout_s,
        "retry": timeout_s * 4,
        "bulk": 10,
        "queue_limit": workers,
        "recycle": 5000,
    }


Q_CLUSTER: dict[str, Any] = {
    "name": "control",
    "orm": "default",
    "broker_class": "config.broker.ListeningBroker",
    "scheduler": False,  # nothing is scheduled there: the pulse rings
    "save_limit": -1,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "guard_cycle": 0.5,
    "label": "Frameyard",
    **_cluster(env.number("CONTROL_WORKERS", 2, minimum=2), timeout_s=60),
    "ALT_CLUSTERS": {
        "traffic": _cluster(env.number("TRAFFIC_WORKERS", 4, minimum=2), timeout_s=600),
    },
}

# Execution: waits and limits, in seconds and bytes

SCAN_BATCH_JOBS = env.number("SCAN_BATCH_JOBS", 200, minimum=1)
QUEUE_CLASS_WEIGHTS = {
    "interactive": env.number("QUEUE_WEIGHT_INTERACTIVE", 6, minimum=1),
    "standard": env.number("QUEUE_WEIGHT_STANDARD", 3, minimum=1),
    "batch": env.number("QUEUE_WEIGHT_BATCH", 1, minimum=1),
}
SUBMIT_TOGETHER = env.number("SUBMIT_TOGETHER", 32, minimum=1)  # attempts that one task sends
POLL_THREADS = env.number("POLL_THREADS", 128, minimum=1)  # of each worker
POLL_THREADS_PER_CHANNEL = env.number("POLL_THREADS_PER_CHANNEL", 32, minimum=1)
POLL_GATHER_MS = env.number("POLL_GATHER_MS", 250)  # answers that come within it are recorded together
RECOVERY_FIRST_WAIT_S = env.number("RECOVERY_FIRST_WAIT_S", 5)
RECOVERY_ABSENCE_READS_APART_S = env.number("RECOVERY_ABSENCE_READS_APART_S", 60)
PROVIDER_CONNECT_TIMEOUT_S = env.number("PROVIDER_CONNECT_TIMEOUT_S", 10, minimum=1)
PROVIDER_READ_TIMEOUT_S = env.number("PROVIDER_READ_TIMEOUT_S", 60, minimum=1)
PROVIDER_DEADLINE_S = env.number("PROVIDER_DEADLINE_S", 90, minimum=1)
POLL_DEADLINE_S = env.number("POLL_DEADLINE_S", 20, minimum=1)
OUTPUT_MAX_BYTES = env.number("OUTPUT_MAX_BYTES", 2_147_483_648, minimum=1)
OUTPUT_FETCH_DEADLINE_S = env.number("OUTPUT_FETCH_DEADLINE_S", 21_600, minimum=60)
OUTPUT_FETCH_TIMEOUT_S = env.number("OUTPUT_FETCH_TIMEOUT_S", 240, minimum=1)
ASSET_IMAGE_MAX_BYTES = env.number("ASSET_IMAGE_MAX_BYTES", 31_457_280, minimum=1)
ASSET_VIDEO_MAX_BYTES = env.number("ASSET_VIDEO_MAX_BYTES", 209_715_200, minimum=1)
ASSET_AUDIO_MAX_BYTES = env.number("ASSET_AUDIO_MAX_BYTES", 52_428_800, minimum=1)
ASSET_INLINE_MAX_BYTES = env.number("ASSET_INLINE_MAX_BYTES", 10_485_760, minimum=1)
OUTPUT_RETENTION_DAYS = env.number("OUTPUT_RETENTION_DAYS", 30)  # 0: outputs are kept for good
OUTPUT_VERIFY_TIMEOUT_S = env.number("OUTPUT_VERIFY_TIMEOUT_S", 30, minimum=1)

# Telling operators

PUBLIC_URL = env.text("PUBLIC_URL")  # where we are found: links in messages and to uploads begin so
ALERT_WEBHOOK_URL = env.text("ALERT_WEBHOOK_URL")
ALERT_WEBHOOK_SECRET = env.text("ALERT_WEBHOOK_SECRET")
ALERT_EMAILS = env.words("ALERT_EMAILS")
ALERT_RERAISE_AFTER_S = env.number("ALERT_RERAISE_AFTER_S", 1800, minimum=60)  # after an acknowledgement

# When what is normal is left: dispatch/baselines.py, docs/alerts.md.
ALERT_SAMPLES = env.number("ALERT_SAMPLES", 20, minimum=1)
ALERT_RATE_FACTOR_PERCENT = env.number("ALERT_RATE_FACTOR_PERCENT", 200, minimum=101)
ALERT_ERRORS_PERCENT = env.number("ALERT_ERRORS_PERCENT", 10)
ALERT_FAILOVER_PERCENT = env.number("ALERT_FAILOVER_PERCENT", 10)
ALERT_SAFETY_PERCENT = env.number("ALERT_SAFETY_PERCENT", 5)
ALERT_SURGE_SAMPLES = env.number("ALERT_SURGE_SAMPLES", 5, minimum=1)
ALERT_SURGE_PERCENT = env.number("ALERT_SURGE_PERCENT", 20)
ALERT_LATENCY_FACTOR_PERCENT = env.number("ALERT_LATENCY_FACTOR_PERCENT", 150, minimum=101)
ALERT_CREDENTIAL_DAYS = env.number("ALERT_CREDENTIAL_DAYS", 14, minimum=1)

# What one operator may give up alone, in micros of the policy's currency; above it a second one has to.
GIVE_UP_ALONE_UP_TO_MICROS = env.number("GIVE_UP_ALONE_UP_TO_MICROS", 5_000_000)

DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", "frameyard@localhost")
MAIL_SECURITY = env.text("MAIL_SECURITY", "none")
MAIL_PASSWORD = env.text("MAIL_PASSWORD")
MAILERS = {
    "default": {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": env.text("MAIL_HOST", "localhost"),
            "port": env.number("MAIL_PORT", 0) or None,  # None: the usual one of MAIL_SECURITY
            "username": env.text("MAIL_USER"),
            "password": MAIL_PASSWORD,
            "use_tls": MAIL_SECURITY == "starttls",
            "use_ssl": MAIL_SECURITY == "tls",
            "timeout": env.number("MAIL_TIMEOUT_S", 10, minimum=1),
        },
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "config.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "config.logs.UnblockedHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {"django-q": {"level": "WARNING"}},
}
