"""URLs of accounts and projects; those of allauth keep its names."""

from __future__ import annotations

from allauth.account import views
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path

from dashboard.people import account, activity_feed, invitations, people, projects

# Two names for one URL: this site's and that of allauth.
sign_out = LogoutView.as_view()
urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", views.login, name="account_login"),
    path("sign-in/", views.login, name="login"),
    path("sign-out/", sign_out, name="account_logout"),
    path("sign-out/", sign_out, name="logout"),
    path("sign-up/", views.signup, name="account_signup"),
    path("invitation/", invitations.invitation, name="invitation"),
    path("invitation/<str:key>/", invitations.come, name="invitation-come"),
    path("projects/", projects.projects, name="projects"),
    path("projects/<slug:slug>/", projects.page, name="project"),
    path("projects/<slug:slug>/settings/", projects.change, name="project-settings"),
    path("projects/<slug:slug>/remove/", projects.remove, name="project-remove"),
    path("projects/<slug:slug>/changes/", projects.project_changes, name="project-changes"),
    path("people/", people.people, name="people"),
    path("people/<int:pk>/", people.person, name="person"),
    path("people/<int:pk>/password/", people.password_link, name="person-password"),
    path("people/<int:pk>/<slug:change>/", people.change, name="person-change"),
    path("changes/", projects.all_changes, name="changes"),
    path("projects/<slug:slug>/members/", projects.add, name="project-add"),
    path("projects/<slug:slug>/members/<int:pk>/", projects.member, name="project-member"),
    path("projects/<slug:slug>/invitations/", projects.invite, name="project-invite"),
    path("projects/<slug:slug>/invitations/<int:pk>/end/", projects.withdraw, name="invitation-end"),
    path("projects/<slug:slug>/webhooks/", projects.new_webhook, name="webhook-new"),
    path("projects/<slug:slug>/webhooks/<int:pk>/test/", projects.send_test_webhook, name="webhook-test"),
    path("projects/<slug:slug>/webhooks/<int:pk>/end/", projects.remove_webhook, name="webhook-end"),
    path("account/", account.page, name="account"),
    path("account/tokens/", account.issue, name="token-new"),
    path("account/tokens/<int:pk>/end/", account.end, name="token-end"),
    path("account/display/", account.display, name="display"),
    path("account/theme/", account.theme, name="theme"),
    path("account/notices/", account.choose_notices, name="notices"),
    path("account/notices/test/", account.send_test_mail, name="notices-test"),
    path("events/seen/", activity_feed.seen, name="events-seen"),
    path("account/inactive/", views.account_inactive, name="account_inactive"),
    path("account/again/", views.reauthenticate, name="account_reauthenticate"),
    path("account/password/", views.password_change, name="account_change_password"),
    path("account/password/set/", views.password_set, name="account_set_password"),
    path("account/password/reset/", views.password_reset, name="account_reset_password"),
    path("account/password/reset/sent/", views.password_reset_done, name="account_reset_password_done"),
    path(
        "account/password/reset/done/", views.password_reset_from_key_done, name="account_reset_password_from_key_done"
    ),
    re_path(
        r"^account/password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("account/second-factor/", include("allauth.mfa.urls")),
    path("account/connections/", include("allauth.socialaccount.urls")),
    path("account/", include("allauth.socialaccount.providers.openid_connect.urls")),
]
