"""Pages for the browser tests, and addresses that are not pages."""

from __future__ import annotations

from typing import Final

WALKED: Final[dict[str, dict[str, str]]] = {
    "lists": {
        "": "",
        "experiments/": "",
        "trials/": "",
        "studies/": "",
        "explore/": "",
        "history/": "",
        "reports/": "",
        "network/": "",
        "networks/": "",
        "tasks/": "",
        "quotas/": "",
        "workloads/": "",
        "workloads/<slug>/": "",
    },
    "experiments": {
        "experiments/new/": "tour=1",
        "experiments/<slug>/": "",
        "experiments/<slug>/edit/": "",
        "experiments/<slug>/move/": "",
        "experiments/<slug>/share/": "",
        "experiments/<slug>/pin/": "",
        "reports/pin/": "part=chart {slug} time",
        "compare/": "of=e:{slug},e:guster-2007-water",
        "compare/share/": "of=e:{slug},e:guster-2007-water",
        "bundles/new/": "of=e:{slug}",
        "imports/": "",
        "network/<slug>/": "",
        "network/predictions/<pk>/": "",
    },
    "chosen": {
        "experiments/chosen/archive/": "of=e:{slug}",
        "experiments/chosen/restore/": "of=e:{slug}",
        "experiments/chosen/tag/": "of=e:{slug}",
        "experiments/chosen/delete/": "of=e:{slug}",
        "experiments/chosen/undelete/": "of=e:{slug}",
        "experiments/chosen/remove/": "of=e:{slug}",
        "experiments/chosen/deleted/": "",
        "trials/chosen/<change>/": "of=t:{trial}",
        "history/chosen/expected/": "of=c:{point}",
        "history/chosen/unexpected/": "of=c:{point}",
        "history/<configuration>/<cluster>/": "metric=elapsed_s",
        "trials/<pk>/": "",
    },
    "reports and help": {
        "reports/new/": "",
        "reports/<pk>/": "",
        "reports/<pk>/edit/": "",
        "reports/<pk>/versions/<number>/": "",
        "reports/<pk>/share/": "",
        "tasks/<pk>/": "",
        "help/": "q=retransmissions",
        "help/<name>/": "",
        "workloads/new/": "",
        "workloads/<name>/edit/": "",
    },
    "clusters and people": {
        "clusters/": "",
        "clusters/new/": "",
        "clusters/<slug>/": "",
        "clusters/<slug>/edit/": "",
        "clusters/<slug>/facts/": "",
        "projects/": "",
        "projects/<slug>/": "",
        "projects/<slug>/changes/": "",
        "changes/": "",
        "people/": "",
        "people/<pk>/": "",
        "server/": "",
    },
    "published": {
        "experiments/guster-2007-water/": "",
        "experiments/eadline-2006-hpl/": "",
        "experiments/york-staging/": "",
        "help/first-experiment/": "",
    },
    "account": {
        "account/": "",
        "account/again/": "",
        "account/password/": "",
        "account/second-factor/": "",
        "account/second-factor/totp/activate/": "",
        "account/second-factor/recovery-codes/generate/": "",
        "account/second-factor/webauthn/": "",
        "account/second-factor/webauthn/add/": "",
        "account/connections/": "",
    },
    "signed out": {
        "sign-in/": "",
        "sign-up/": "",
        "invitation/": "",
        "account/inactive/": "",
        "account/password/reset/": "",
        "account/password/reset/sent/": "",
        "account/password/reset/done/": "",
        "account/password/reset/<uidb36>-<key>/": "",
        "account/connections/login/cancelled/": "",
        "account/connections/login/error/": "",
    },
}
"""By groups, each one walk: the route, and the query that it needs, with names of things. Published ones are pages of routes above."""

NOT_WALKED: Final[dict[str, frozenset[str]]] = {
    "parts of pages, which are seen there": frozenset(
        {
            *(
                "pulse/",
                "pulse/ended/",
                "experiments/<slug>/live/",
                "experiments/<slug>/parts/",
                "experiments/<slug>/diagnosis/",
            ),
            *("trials/<pk>/live/", "trials/<pk>/hosts/", "trials/<pk>/ranks/", "trials/<pk>/packets/"),
            "trials/<pk>/output/",
            *("trials/<pk>/packets/<number>/", "trials/<pk>/environment/", "clusters/<slug>/test/", "reports/parts/"),
        }
    ),
    "files and data": frozenset(
        {
            *(
                "healthz",
                "metrics",
                "experiments/<slug>/specification.yaml",
                "experiments/<slug>/notebook.ipynb",
                "client/<name>",
                "trials/<pk>/files/<name>",
                "tasks/<pk>/file",
            ),
            "workloads/<name>/program.yaml",
            *("explore/export.<form>", "reports/<pk>/report.md", "reports/<pk>/report.html"),
            *("network/<slug>/predictions.csv", "account/second-factor/recovery-codes/download/"),
            "account/second-factor/webauthn/login/",
        }
    ),
    "lead on to a page": frozenset(
        {
            "search/",
            "views/<pk>/",
            "explore/views/<pk>/",
            "invitation/<key>/",
            "shared/<key>/",
            "account/password/set/",
            "configurations/<pk>/trials/",
            "trials/<pk>/between/",
        }
    ),
    "of allauth, in the frame and of the parts of those that are walked": frozenset(
        {
            *("account/second-factor/authenticate/", "account/second-factor/reauthenticate/"),
            *("account/second-factor/totp/deactivate/", "account/second-factor/recovery-codes/"),
            *("account/second-factor/webauthn/reauthenticate/", "account/second-factor/webauthn/keys/<pk>/remove/"),
            *("account/second-factor/webauthn/keys/<pk>/edit/", "account/connections/signup/"),
            *("account/oidc/<provider_id>/login/", "account/oidc/<provider_id>/login/callback/"),
        }
    ),
    "Django's own administration": frozenset({"admin/"}),
}
