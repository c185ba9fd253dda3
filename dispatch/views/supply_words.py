"""The words of adding a supply, of trying it, and of probing a circuit."""

from typing import Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dispatch.views.vocabulary import Words

SUPPLY_STEPS: Final[Words] = {  # of dispatch.supply_form
    "what": _("What it is"),
    "can": _("What it can do"),
    "slots": _("Its slots"),
    "cost": _("What it charges"),
}
SUPPLY_FIELDS: Final[Words] = {
    "channel": _("Channel"),
    "slug": _("Name"),
    "modality": _("Modality"),
    "provider_model": _("Provider's model"),
    "model_family": _("Model family"),
    "model_version": _("Model version"),
    "real_person_policy": _("Real persons"),
    "lifecycle": _("Lifecycle"),
    "sunset": _("Its last day"),
    "label": _("Label of this version"),
    "modes": _("Modes"),
    "durations_s": _("Lengths (s)"),
    "resolutions": _("Resolutions"),
    "aspect_ratios": _("Aspect ratios"),
    "sizes": _("Sizes"),
    "audio": _("Sound"),
    "max_images": _("Reference images at most"),
    "max_videos": _("Reference videos at most"),
    "max_audios": _("Reference audio at most"),
    "max_n": _("Results at most"),
    "more": _("More, as JSON"),
    "concurrency": _("Slots"),
    "unknown_limit": _("Slots of unknown outcome at most"),
}
SUPPLY_FAULTS: Final[Words] = {
    "choose": _("Choose one."),
    "missing": _("This is needed."),
    "bad_slug": _("A name has letters, digits, - and _, at most 80, and is not “new”."),
    "slug_taken": _("A supply has this name already."),
    "bad_date": _("A day is written like 2027-01-31."),
    "no_modes": _("Tick at least one."),
    "bad_durations": _("Lengths are written like 5, 10 or like 4-15."),
    "empty_list": _("Name at least one, with commas between them."),
    "bad_number": _("A whole number is needed here."),
    "bad_json": _("This is no JSON object."),
    "bad_document": _("The rules of the catalogue do not take this:"),
    "contradiction": _("A constraint can never be met:"),
    "no_limit": _("A limit is a whole number of slots from 1 to 1,000,000."),
    "bad_price": _("The price cannot be read here."),
}
REAL_PERSON: Final[Words] = {
    "allowed": pgettext_lazy("real persons", "allowed"),
    "restricted": pgettext_lazy("real persons", "restricted"),
    "denied": pgettext_lazy("real persons", "denied"),
}
MODES: Final[Words] = {  # of requests
    "text_to_video": _("text to video"),
    "image_to_video": _("image to video"),
    "first_last_frame": _("first and last frame"),
    "video_to_video": _("video to video"),
    "extend": _("extend a video"),
    "text_to_image": _("text to image"),
    "image_edit": _("edit an image"),
}
NEEDS: Final[Words] = {  # of dispatch.queries.readiness
    "capability": _("What it can do is declared"),
    "slots": _("It has slots"),
    "price": _("A cost rule is in force"),
    "credential": _("Its channel has a credential"),
    "switched_on": _("It and its channel are switched on"),
    "tried": _("A call that tried it succeeded in the last 24 hours"),
    "bound": _("A public model uses it"),
}
NEED_STATES: Final[Words] = {
    "done": _("done"),
    "missing": _("missing"),
    "under_way": _("under way"),
    "failed": _("failed"),
    "unknown": _("not known"),
}
TRIAL_STATES: Final[Words] = {
    "asked": _("Asked for, not sent yet"),
    "sending": _("Being sent"),
    "accepted": _("The provider took it"),
    "succeeded": pgettext_lazy("trial call", "Succeeded"),
    "failed": pgettext_lazy("trial call", "Failed"),
    "refused": _("Refused: nothing was begun"),
    "unknown": _("Nobody knows whether the provider took it"),
}
UNREADY: Final[Words] = {  # of dispatch.trial
    "no_capability": _("What it can do is not declared."),
    "switched_off": _("It or its channel is switched off."),
    "no_credential": _("Its channel has no credential."),
    "held_back": _("New submissions of its channel are held back: too many of them end unknown."),
    "no_price": _("No cost rule is in force: what a call costs could not be said."),
    "not_priced": _("The cost rule has no price for this request."),
    "bad_request": _("It does not take this request:"),
    "bad_document": _("A stored document cannot be read:"),
    "does_not_compile": _("The adapter cannot say this in the provider's words:"),
}
PROBE_FAULTS: Final[Words] = {
    "choose": _("Choose what to probe."),
    "no_reason": _("Say why."),
    "not_open": _("Its circuit is not open any more: somebody or its cooldown was first."),
    "account_refused": _("The account check failed: a customer's job would be spent on a key that is bad."),
}
