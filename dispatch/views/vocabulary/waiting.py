"""Words of what waits, and of what it waits for."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from dispatch.views.vocabulary.words import Words

WAITING: Final[Words] = {  # of dispatch.waiting.Code: what blocks a job now
    "dispatcher_silent": _("No dispatcher scans: nothing new begins."),
    "deadline_passed": _("Its deadline has passed: the next scan ends it."),
    "set_aside": _("The last look at it failed; it is looked at again within a minute."),
    "not_looked_at": _("The next scan will look at it."),
    "model_not_published": _("Its public model is not published."),
    "no_capable_supply": _("No supply can do what it asks for."),
    "content_cooldown": _("Its content was refused; it is too early to ask again."),
    "content_frozen": _("Its content was refused too often; it is not sent there again."),
    "out_of_service": _("Those who could take it are switched off or draining."),
    "unhealthy": _("The circuits of those who could take it are open."),
    "provider_pause": _("Those who could take it have asked us to wait."),
    "unknown_slots_full": _("Slots with unknown outcome have reached their limit."),
    "capacity_full": _("No free slot: those who could take it are full."),
    "cost_limit": _("Those who could take it are above a cost limit."),
    "tenant_limit": _("As many jobs of its customer run as may at once."),
    "in_turn": _("Others come first in the fair queue."),
}
WAITING_STEPS: Final[Words] = {  # of dispatch.waiting.Step: where it is stopped
    "dispatcher": _("Dispatcher"),
    "model": _("Publication"),
    "capability": _("Hard capability"),
    "health_and_capacity": _("Health and capacity"),
    "cost": _("Stability and cost policy"),
    "queue": _("Fair queue"),
}
VERDICTS: Final[Words] = {  # of dispatch.waiting.verdict, with numbers
    "dispatcher_silent": _("Nothing moves because no dispatcher scans. Waiting: %(waiting)s."),
    "nothing_waits": _("Nothing is waiting."),
    "flowing": _("Flowing. Waiting: %(waiting)s."),
    "blocked": _("Waiting: %(waiting)s. Of these do not move: %(jobs)s. %(reason)s"),
}
WAITING_SHORT: Final[Words] = {  # heads of columns
    "dispatcher_silent": _("no dispatcher"),
    "deadline_passed": _("past its deadline"),
    "set_aside": _("look failed"),
    "not_looked_at": _("next scan"),
    "model_not_published": _("not published"),
    "no_capable_supply": _("nobody can"),
    "content_cooldown": _("content refused"),
    "content_frozen": _("content frozen"),
    "out_of_service": _("switched off"),
    "unhealthy": _("circuit open"),
    "provider_pause": _("provider's pause"),
    "unknown_slots_full": _("unknown slots"),
    "capacity_full": _("no free slot"),
    "cost_limit": _("cost limit"),
    "tenant_limit": _("customer's limit"),
    "in_turn": _("its turn"),
}
WAITING_PLACES: Final[Words] = {  # the page where a reason can be taken away
    "dispatcher_silent": _("Alerts"),
    "deadline_passed": _("Jobs"),
    "set_aside": _("Alerts"),
    "not_looked_at": _("Jobs"),
    "model_not_published": _("Publish"),
    "no_capable_supply": _("Public models"),
    "content_cooldown": _("Jobs"),
    "content_frozen": _("Jobs"),
    "out_of_service": _("Channels"),
    "unhealthy": _("Health"),
    "provider_pause": _("Health"),
    "unknown_slots_full": _("Uncertain attempts"),
    "capacity_full": _("Capacity"),
    "cost_limit": _("Public models"),
    "tenant_limit": _("Jobs"),
    "in_turn": _("Jobs"),
}
CHECKS: Final[Words] = {  # of dispatch.queries.standstill, in their order
    "arriving": _("Jobs arrive"),
    "dispatcher": _("The dispatcher is alive"),
    "switches": _("No switch or freeze stops them"),
    "published": _("Their models are published"),
    "capability": _("Candidates after step 1: hard capability"),
    "health": _("Candidates after step 2: health, capacity and cost"),
}
