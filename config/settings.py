"""Django settings; config/environment.py documents the variables."""

import hashlib
import os
import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

from csp import constants as csp
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from config import store
from config.accounts import directory, group_roles, identity_provider, mail, origin
from config.environment import Environment, database, redis_address, variables_of, with_password
from config.log import configure_logging
from config.secrets import read_or_create_secret
from config.services.lease import read_state

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = Environment.load(BASE_DIR / ".env")
_VARIABLES = variables_of(BASE_DIR / ".env")
SETTING_FILES = [
    Path(_VARIABLES[f"{name}_FILE"]).absolute() for name in Environment.model_fields if _VARIABLES.get(f"{name}_FILE")
]

# The directory of all data: embedded services, captures, secrets.
VAR = (BASE_DIR / ENVIRONMENT.RANKWIRE_VAR).resolve()
DEBUG = ENVIRONMENT.RANKWIRE_DEBUG
SECRET_KEY = ENVIRONMENT.RANKWIRE_SECRET_KEY or read_or_create_secret(VAR / "secret-key")

# PostgreSQL and Redis of the environment, or the embedded ones of script/server, script/run and script/manage.
_embedded = read_state(VAR)
DATABASE_URL = with_password(
    ENVIRONMENT.DATABASE_URL or _embedded.database_url,
    ENVIRONMENT.RANKWIRE_DATABASE_PASSWORD,
    name="RANKWIRE_DATABASE_PASSWORD",
)
REDIS_URL = with_password(
    ENVIRONMENT.REDIS_URL or _embedded.redis_url,
    ENVIRONMENT.RANKWIRE_REDIS_PASSWORD,
    name="RANKWIRE_REDIS_PASSWORD",
)
# False for commands that run without services (collectstatic, makemigrations, mypy).
SERVICES_KNOWN = bool(DATABASE_URL and REDIS_URL)
DATABASES = {"default": database(DATABASE_URL or "postgresql://127.0.0.1:1/rankwire")}
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": redis_address(REDIS_URL or "redis://127.0.0.1:1/0"),
        # Values that were signed with another secret key are absent, not forged.
        "KEY_PREFIX": f"rankwire:{hashlib.sha256(SECRET_KEY.encode()).hexdigest()[:8]}",
        "OPTIONS": {
            "serializer": "config.cache.SignedSerializer",
            "socket_connect_timeout": 3,
            "socket_timeout": 5,  # pages wait no longer
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Limits
MAX_TRIALS = ENVIRONMENT.RANKWIRE_MAX_TRIALS  # of an experiment
# Of projects without own quotas; 0: no limit
QUOTA_QUEUED_TRIALS = ENVIRONMENT.RANKWIRE_QUOTA_QUEUED_TRIALS
QUOTA_MACHINE_HOURS = ENVIRONMENT.RANKWIRE_QUOTA_MACHINE_HOURS  # in 30 days
QUOTA_DISK_GIB = ENVIRONMENT.RANKWIRE_QUOTA_DISK_GIB
QUOTA_CAPTURE_GIB = ENVIRONMENT.RANKWIRE_QUOTA_CAPTURE_GIB
MAX_TRIAL_HOURS = ENVIRONMENT.RANKWIRE_MAX_TRIAL_HOURS  # of the time limit of a trial
OUTPUT_LIMIT_BYTES = ENVIRONMENT.RANKWIRE_OUTPUT_LIMIT_MIB << 20  # of a trial
COUNTER_TREES = ENVIRONMENT.RANKWIRE_COUNTER_TREES
FOREIGN_CPU_PERCENT = ENVIRONMENT.RANKWIRE_FOREIGN_CPU_PERCENT  # CPU of other programs
# For packages without Django settings, and the same for trials of all workers.
if TRIAL_PATH := ENVIRONMENT.RANKWIRE_PATH:
    os.environ["RANKWIRE_PATH"] = TRIAL_PATH
WORKLOADS_DIRECTORY = Path(ENVIRONMENT.RANKWIRE_WORKLOADS) if ENVIRONMENT.RANKWIRE_WORKLOADS else None
HEARTBEAT_FILE = ENVIRONMENT.RANKWIRE_HEARTBEAT_FILE  # touched by the worker
STOP_SECONDS = ENVIRONMENT.RANKWIRE_STOP_SECONDS  # a running trial may take after SIGTERM
TRIAL_USER = ENVIRONMENT.RANKWIRE_TRIAL_UID  # of programs, if root runs the workers
TRIAL_PROCESSES = ENVIRONMENT.RANKWIRE_TRIAL_PROCESSES
TRIAL_MEMORY_BYTES = ENVIRONMENT.RANKWIRE_TRIAL_MEMORY_MIB << 20  # 0: most of the machine's
TRIAL_DISK_BYTES = ENVIRONMENT.RANKWIRE_TRIAL_DISK_MIB << 20
TRIAL_FILES = ENVIRONMENT.RANKWIRE_TRIAL_FILES
DISK_RESERVE_BYTES = ENVIRONMENT.RANKWIRE_DISK_RESERVE_MIB << 20
REQUEST_CPU_SECONDS = ENVIRONMENT.RANKWIRE_REQUEST_CPU_SECONDS  # 0: no limit
DIRECT_EXPORT_ROWS = ENVIRONMENT.RANKWIRE_DIRECT_EXPORT_ROWS  # larger tables are exported in the background
EXPORT_DAYS = ENVIRONMENT.RANKWIRE_EXPORT_DAYS  # of such a file
INSTALLATION_NAME = ENVIRONMENT.RANKWIRE_NAME or socket.gethostname()  # in bundles
IMPORT_LIMIT_BYTES = ENVIRONMENT.RANKWIRE_IMPORT_LIMIT_MIB << 20  # of an upload
EVENT_DAYS = ENVIRONMENT.RANKWIRE_EVENT_DAYS  # of events and sent messages; 0: forever
DELETED_DAYS = ENVIRONMENT.RANKWIRE_DELETED_DAYS  # of deleted experiments; 0: forever
STORE_CACHE_BYTES = ENVIRONMENT.RANKWIRE_STORE_CACHE_MIB << 20
STORE_PATIENCE_SECONDS = ENVIRONMENT.RANKWIRE_STORE_PATIENCE_SECONDS
CAPTURE_RETENTION_DAYS = ENVIRONMENT.RANKWIRE_CAPTURE_RETENTION_DAYS  # 0: forever

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_filters",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "axes",
    "auditlog",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "config",
    "experiments",
    "dashboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.middleware.compression.CompressionMiddleware",
    "dashboard.middleware.front.FrontMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "dashboard.middleware.nul.NulMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.middleware.visitors.VisitorMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "dashboard.middleware.preferences.PreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "auditlog.middleware.AuditlogMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.middleware.imported.ImportedTablesMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it replaces the answer to a locked name
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates", BASE_DIR / "templates" / "people"],  # the second for template names of allauth
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.people.preferences.accounts",
            ],
        },
    }
]

LDAP = directory(ENVIRONMENT)
vars().update(LDAP)
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    *(["dashboard.people.directory.DirectoryBackend"] if LDAP else []),
    "dashboard.people.backends.AccountBackend",
]
PASSWORD_HASHERS = [  # the first one; others are upgraded at sign-in
    f"django.contrib.auth.hashers.{name}PasswordHasher" for name in ("Argon2", "PBKDF2")
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
] + [{"NAME": "experiments.models.people.access.TokensEndWithThePassword"}]

# Accounts: optional sign-up, second factors, optional identity provider
SIGN_UP = ENVIRONMENT.RANKWIRE_SIGN_UP
SMTP_URL = ENVIRONMENT.RANKWIRE_SMTP_URL
SENDS_MAIL = bool(SMTP_URL)
vars().update(mail(SMTP_URL, ENVIRONMENT.RANKWIRE_MAIL_FROM))
IDENTITY_PROVIDERS = identity_provider(ENVIRONMENT)
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "APPS": IDENTITY_PROVIDERS,
        "provider_class": "dashboard.people.identity_provider.IdentityProvider",
    }
}
SOCIALACCOUNT_ADAPTER = "dashboard.people.adapters.SocialAccountAdapter"
SOCIALACCOUNT_FORMS = {"signup": "dashboard.people.forms.NameForm"}
SOCIALACCOUNT_STORE_TOKENS = False
GROUP_ROLES = group_roles(ENVIRONMENT.RANKWIRE_GROUPS)
GROUPS_CLAIM = ENVIRONMENT.RANKWIRE_OIDC_GROUPS_CLAIM
ACCOUNT_ADAPTER = "dashboard.people.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "dashboard.people.forms.SignInForm",
    "signup": "dashboard.people.forms.SignUpForm",
    "reset_password": "dashboard.people.forms.ResetForm",
    "reset_password_from_key": "dashboard.people.forms.LinkForm",
    "change_password": "dashboard.people.forms.ChangeForm",
    "set_password": "dashboard.people.forms.FirstPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Rankwire: "
ACCOUNT_SESSION_REMEMBER = True
# Axes counts wrong passwords by name and address: users behind one address do not lock out each other.
# Codes of second factors are counted by account (AccountAdapter.pre_authenticate).
# Mails: addresses of new accounts are not verified, and may be those of others.
ACCOUNT_RATE_LIMITS = {
    "login": None,
    "login_failed": "10/15m/key",
    "change_password": "10/15m/user",  # asks for the old one
    "test_message": "10/10m/user,10/10m/ip",
    "reset_password": "10/10m/ip,5/10m/key",
}
MFA_ADAPTER = "dashboard.people.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["recovery_codes", "totp", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Rankwire"
MFA_FORMS = {
    "add_webauthn": "dashboard.people.forms.AddKeyForm",
    "login_webauthn": "dashboard.people.forms.KeySignInForm",
}

# Log of changes (experiments/models/changes.py), without addresses of senders, which headers can forge.
AUDITLOG_DISABLE_REMOTE_ADDR = True
AUDITLOG_MASK_CALLABLE = "experiments.models.changes.mask"
_SECRET = ["digest", "last_used_at"]
AUDITLOG_INCLUDE_TRACKING_MODELS = (
    *("experiments.Project", "experiments.Cluster", "experiments.Program", "experiments.ExpectedChange"),
    "experiments.Membership",
    "experiments.Report",
    {"model": "experiments.Webhook", "exclude_fields": ["nonce"]},
    {"model": "experiments.NoticeChoices", "exclude_fields": ["seen", "seen_at"], "m2m_fields": ["projects"]},
    {"model": "mfa.Authenticator", "include_fields": ["user", "type"]},
    {"model": "experiments.Invitation", "exclude_fields": _SECRET},
    {"model": "experiments.ApiToken", "exclude_fields": _SECRET},
    {"model": "experiments.ShareLink", "exclude_fields": _SECRET},
    {"model": "experiments.Experiment", "include_fields": ["project", "slug", "name", "version", "priority", "owner"]},
    {
        "model": "auth.User",
        "include_fields": ["username", "email", "is_active", "is_staff", "is_superuser", "password"],
        "mask_fields": ["password"],
    },
)

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = ENVIRONMENT.RANKWIRE_TIME_ZONE

# Notifications: base URL of links, private networks that webhooks may reach
PUBLIC_ADDRESS = origin(ENVIRONMENT.RANKWIRE_ADDRESS)
WEBHOOK_NETWORKS = ENVIRONMENT.RANKWIRE_WEBHOOK_NETWORKS

# Access
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *ENVIRONMENT.RANKWIRE_ALLOWED_HOSTS]
# Path of a site: config/front.py strips it, Django prepends it to each URL.
PREFIX = ENVIRONMENT.RANKWIRE_PREFIX
FORCE_SCRIPT_NAME = PREFIX or None
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = PREFIX or "/"  # hidden from other programs of the site
MESSAGE_STORAGE = "dashboard.requests.newest_messages.NewestMessages"
SESSION_COOKIE_NAME = "rankwire_session"  # browsers share cookies between ports
CSRF_TRUSTED_ORIGINS = ENVIRONMENT.RANKWIRE_TRUSTED_ORIGINS
if ENVIRONMENT.RANKWIRE_BEHIND_TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 30 * 24 * 3600
    SECURE_REDIRECT_EXEMPT = [rf"^{re.escape(PREFIX[1:])}/?healthz$"]  # health checks of containers use plain HTTP
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https"
else:
    MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True  # browsers allow it on localhost only
FORWARDED_FOR = ENVIRONMENT.RANKWIRE_FORWARDED_FOR
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_NUMBER_FIELDS = 4000  # the form of a program has 100 figures at most, each with 16 fields
MAX_BODY_BYTES = 8 << 20  # of a request
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [csp.NONE],
        "script-src": [csp.SELF],
        "style-src": [
            csp.SELF,
            "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
        ],  # an empty style element of Plotly
        "style-src-attr": [csp.UNSAFE_INLINE],  # set by Plotly, not by templates
        "img-src": [csp.SELF, "data:", "blob:"],  # charts saved as pictures
        "font-src": [csp.SELF],
        "connect-src": [csp.SELF],
        "form-action": [csp.SELF, *(origin(provider["settings"]["server_url"]) for provider in IDENTITY_PROVIDERS)],
        "base-uri": [csp.NONE],
        "frame-ancestors": [csp.NONE],
    }
}

# Wrong passwords: counted in Redis per name and address
AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"
AXES_USERNAME_CALLABLE = "dashboard.people.backends.counted_name"
AXES_CLIENT_IP_CALLABLE = "dashboard.people.backends.counted_address"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "dashboard.middleware.front.locked_out"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

WEB_PROCESSES = ENVIRONMENT.RANKWIRE_WEB_PROCESSES

# Static files, and those of node_modules in config/staticfiles.py
STATIC_URL = f"{PREFIX}/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static", ("guides", BASE_DIR / "docs" / "images")]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "config.staticfiles.NodeModulesFinder",
]
STORAGES = {
    "artifacts": store.artifacts(ENVIRONMENT, VAR),
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "config.staticfiles.ManifestStorage"
    },
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "dashboard.api.rest.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "dashboard.api.rest.authentication.WithinScope",
    ],
    "DEFAULT_PAGINATION_CLASS": "dashboard.api.rest.pagination.Pagination",
    "DEFAULT_PARSER_CLASSES": ["dashboard.api.rest.parsers.StrictJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "dashboard.api.rest.errors.handle",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_SCHEMA_CLASS": "dashboard.api.examples.WithExamples",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rankwire",
    "DESCRIPTION": "A repository of experiments and MPI trials, with packet captures.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "dashboard.api.rest.schema.bodies_are_required",
        "dashboard.api.rest.schema.fields_may_be_left_out",
    ],
    "SERVERS": [{"url": PREFIX}] if PREFIX else [],
    "ENUM_NAME_OVERRIDES": {
        "MeasurementScope": "experiments.models.Measurement.Scope",
        "TrialKind": "experiments.models.Kind",
        "TrialState": "experiments.models.State",
        "ArtifactKind": "experiments.models.Artifact.Kind",
        "ProcessRole": ["beat", "worker", "background"],
        "RoleEnum": "experiments.models.Membership.Role",
    },
}

# Celery. Trials are acknowledged early: a redelivery would launch mpirun twice (docs/explanation/architecture.md).
CELERY_BROKER_URL = REDIS_URL or "redis://127.0.0.1:1/0"
CELERY_BROKER_TRANSPORT_OPTIONS = {"global_keyprefix": "rankwire:", "socket_timeout": 30, "socket_keepalive": True}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # outages may last for hours
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "trials"
# A worker consumes both queues unless it is started with --queues.
CELERY_TASK_QUEUES = [Queue("trials"), Queue("analysis")]
# Tasks that users wait for have a worker of their own.
CELERY_TASK_ROUTES = {
    "workers.tasks.read_again": {"queue": "analysis"},
    "dashboard.background.*": {"queue": "background"},
    "workers.tasks.send_notices": {"queue": "background"},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# One process per concurrently busy cluster, and one for the sweep
CELERY_WORKER_CONCURRENCY = ENVIRONMENT.RANKWIRE_WORKER_PROCESSES
# Celery's 4 s are too short for a new process if trials use all cores.
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# The sweep detects lost trials and messages within seconds. Messages do not expire (workers/backlog.py).
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "workers.tasks.sweep", "schedule": 5.0},
    "retention": {"task": "workers.tasks.remove_old_captures", "schedule": 3600.0},
}
CELERY_BEAT_SCHEDULER = "config.beat:SteadyScheduler"

LOGGING_CONFIG = None
LOG_LEVEL = ENVIRONMENT.RANKWIRE_LOG_LEVEL
LOG_FORMAT = ENVIRONMENT.RANKWIRE_LOG_FORMAT
configure_logging(level=LOG_LEVEL, style=LOG_FORMAT)


def require_services() -> None:
    """Raise `ImproperlyConfigured` if the address of PostgreSQL or Redis is unknown."""
    missing = [n for n, v in (("DATABASE_URL", DATABASE_URL), ("REDIS_URL", REDIS_URL)) if not v]
    if missing:
        raise ImproperlyConfigured(f"{' and '.join(missing)} not set, and no embedded services run; use script/server.")
