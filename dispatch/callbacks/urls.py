"""Addresses that providers call; `catalog.callback_addresses` makes them."""

from django.urls import path

from dispatch.callbacks import door

urlpatterns = [path("<slug:provider>/<slug:place>/", door.callback, name="callback")]
