"""Addresses of adding a supply and of trying it."""

from django.urls import path

from dispatch.views import new_supply, try_supply

# Before the page of a supply, whose name could be any of these words.
urlpatterns = [
    path("supplies/new/", new_supply.new_supply, name="new_supply"),
    path("supplies/new/keep/<str:step>/", new_supply.keep_supply_step, name="keep_supply_step"),
    path(
        "supplies/new/<str:draft_id>/discard/", new_supply.discard_supply_draft, name="discard_supply_draft"
    ),
    path(
        "supplies/new/<str:draft_id>/discard/now/",
        new_supply.discard_supply_draft_now,
        name="discard_supply_draft_now",
    ),
    path("supplies/new/<str:draft_id>/<str:step>/", new_supply.supply_step, name="supply_step"),
    path("supplies/<str:slug>/try/", try_supply.try_supply, name="try_supply"),
    path("supplies/<str:slug>/try/now/", try_supply.try_supply_now, name="try_supply_now"),
    path("supplies/<str:slug>/try/<str:trial_id>/look/", try_supply.look_at_trial, name="look_at_trial"),
]
