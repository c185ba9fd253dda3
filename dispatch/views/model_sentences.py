"""The English sentences of the pure modules behind the pages of public models, named so that makemessages
finds them. A test keeps these lists and those modules equal."""

from typing import Final

from django.utils.translation import gettext_noop as _

FAULTS: Final = (
    _("Priority must be a whole number from 0 to 1,000,000. You entered {typed}."),
    _("Give a priority: a whole number from 0 to 1,000,000."),
    _("Give a whole number. You entered {typed}."),
    _("Give a number, such as 1.5. You entered {typed}."),
    _("Give an amount with at most six decimal places, such as 30.00. You entered {typed}."),
    _("This value can't be: {why}."),
    _("Choose one of the values. You sent {typed}."),
    _("Choose the rule that says what a degraded delivery drops."),
    _("This supply is bound in this tier already."),
    _("At most {most} characters."),
)
NOTICES: Final = (
    _("Same priority {priority} in this tier: {supplies}. Cost decides between them, then health."),
    _("Every priority in this tier is 0: cost decides the order, then health."),
    _("No number fits between {supplies}. Renumber to make room."),
    _("Nobody in this tier can take work now."),
    _("No supply is bound: customers could not use this model."),
    _("No exact supply is bound: the model could not be published."),
    _("The policy of this model does not read priorities: they have no effect."),
)
GATES: Final = (
    _("an exact binding that can serve"),
    _("{count} can serve"),
    _("{count} can serve ({supplies})"),
    _("at least one enabled exact binding whose supply and channel are enabled, with a credential"),
    _("Enable an exact binding, its supply and its channel, and store the channel's credential."),
    _("capability versions"),
    _("every bound supply has a published, valid capability version in force"),
    _("Publish a capability document for the supply, or remove its binding."),
    _("cost rules"),
    _("every bound supply has a price in force in a mode the model sells, with examples inside the ceiling"),
    _("Publish a price, add the currency's rate, raise max_cost_micros, or remove the binding."),
    _("{supply}: charges {mode}, and the model sells {sold}"),
    _("{supply}: no rate from {currency} to {to}"),
    _("{where}: no price"),
    _("{where}: costs {amount} {currency}, above the ceiling {most}"),
    _("degradation"),
    _("{supply}: its rule is not verified and published"),
    _("the disclosure text is empty"),
    _("every degraded binding has a verified, published rule, and the public text discloses the loss"),
    _("Verify and publish the rule, and say in the disclosure what a degraded delivery loses."),
    _("policy and priorities"),
    _("{supply}: priority {priority}"),
    _("valid policy parameters, and priorities from 0 to 1000000"),
    _("Correct the named parameter in a new version of the policy, or the priority."),
    _("example requests"),
    _("the model has no example request"),
    _("at least one example request, and each compiles on every exact supply"),
    _("Correct the example, or bind the supply in a tier that it can serve."),
    _("sunset dates"),
    _("{supply}: ended on {day}"),
    _("no bound supply is past its sunset date"),
    _("Remove the binding of that supply."),
    _("health"),
    _("{count} of {of} exact supplies in service"),
    _("{count} of {of} exact supplies in service ({supplies})"),
    _("at least one exact supply that is neither circuit_open nor disabled, nor its channel"),
    _("Wait until an exact supply recovers, or enable its health again."),
    _("replay"),
    _("{count} replayed without an error"),
    _("replaying the last recorded selections raises no error"),
    _("Look at the named job: the present bindings or documents cannot decide its request."),
    _("nothing is missing"),
    _("{place}: {problem}"),
    _("{problem}"),
)
WHY_NOT: Final = (
    _("{loser} would have won with priority {after} or higher; it had {before}."),
    _("{loser} would have won if {subject} had had priority {after} or lower; it had {before}."),
    _("{loser} would have won if {places} had been {after}; it was {before}."),
    _("{loser} would have won if {places} had been {after} with {successes} successes; it was {before}."),
    _("{loser} would have won with {after} free slots; it had {before}."),
    _(
        "{loser} would have won with {after} free slots, and fewer held by attempts whose outcome is not"
        " known; it had {before}."
    ),
    _("{loser} would have won if {subject} had had no free slot; it had {before}."),
    _("{loser} would have won at {after} {currency} or less; it was quoted {before}."),
    _("{loser} would have won with a price of {after} {currency}; it had none for this request."),
)
