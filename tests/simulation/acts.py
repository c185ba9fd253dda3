"""What people do in a life: customers post and cancel; operators close, lower, rotate and republish."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from billing.models import ApiKey
from billing.services.revoke_key import revoke_key
from catalog.credentials import Credential
from catalog.exceptions import StaleRevision
from catalog.models import CapacityGroup, Channel, PublicModel, Supply
from catalog.repository import channel_facts, supply_facts
from catalog.services.save_channel import save_channel
from catalog.services.save_supply import save_supply
from catalog.services.set_group_capacity import set_group_capacity
from catalog.simulator.server import FACES
from dispatch.services.publish import publish
from dispatch.services.withdraw_model import withdraw_model
from tests.simulation.installation import CANARIES, OPERATOR, Installation
from tests.simulation.provider import ROTATED

JOBS = "/api/v1/jobs/"
_BODIES: tuple[Mapping[str, Any], ...] = (
    {"model": "seedance-2.0-933", "prompt": "a lighthouse in a storm", "duration_s": 5, "resolution": "480p"},
    {"model": "seedance-2.0-933", "prompt": "fog over a forest", "duration_s": 5, "resolution": "480p"},
    {"model": "seedance-1.0-pro", "prompt": "a paper boat", "duration_s": 5, "resolution": "480p"},
    {"model": "seedance-1.0-pro", "prompt": "a lighthouse in a storm", "duration_s": 5, "resolution": "480p"},
    {"model": "seedream-4.0", "prompt": "quinces, oil on canvas", "size": "1024x1024"},
)
_USUAL = {"ark-beijing": 3, "ark-singapore": 2}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said to one POST of a job."""

    key: str | None
    body: Mapping[str, Any]
    status: int
    content: str


class People:
    """The customers and operators of one life; `dice` are the life's."""

    def __init__(self, installation: Installation) -> None:
        self._world = installation
        self.dice = installation.dice
        self.answers: list[Answer] = []
        self.forged: list[int] = []  # what was answered to callbacks that nobody could have sent
        self.pending: list[tuple[str, Mapping[str, Any], str]] = []  # posts nobody has answered yet
        self._posted = 0

    def new_post(self) -> tuple[str, Callable[[], None]]:
        """One POST; some are sent twice at once, as an impatient client does."""
        self._posted += 1
        body = dict(self.dice.choice(_BODIES))
        key = f"key-{self._posted}"
        who = "doomed" if self._world.adversary.chance("operator", 0.4) else "main"
        post = (key, body, who)
        if self._world.adversary.chance("customer", 0.4) and self._world.adversary.inject(
            "posted twice at once"
        ):
            self.pending.append(post)
        return self.post(post)

    def post(self, post: tuple[str, Mapping[str, Any], str]) -> tuple[str, Callable[[], None]]:
        key, body, who = post
        self.pending.append(post)

        def send() -> None:
            response = self._world.client(who).post(
                JOBS, body, format="json", headers={"Idempotency-Key": key}
            )
            content = response.content.decode()
            self.answers.append(Answer(f"{who}:{key}", body, response.status_code, content))
            self._world.tell(
                f"POST {key} {response.status_code} {content[:60] if response.status_code != 201 else ''}"
            )
            if response.status_code < 500 and post in self.pending:
                self.pending.remove(post)

        return f"post {key}", send

    def again(self) -> tuple[str, Callable[[], None]] | None:
        """A POST whose answer never came is sent again, with its key."""
        if not self.pending:
            return None
        post = self.pending.pop(0)
        return self.post(post)

    def cancel(self) -> tuple[str, Callable[[], None]] | None:
        jobs = self._jobs()
        if not jobs:
            return None
        job, who = self.dice.choice(jobs)

        def send() -> None:
            response = self._world.client(who).post(f"{JOBS}{job}/cancel/")
            self._world.tell(f"cancel {job} {response.status_code}")

        return f"cancel {job}", send

    def pry(self) -> tuple[str, Callable[[], None]] | None:
        """A stranger asks for, and cancels, somebody else's job."""
        jobs = self._jobs()
        if not jobs:
            return None
        job, _ = self.dice.choice(jobs)

        def send() -> None:
            stranger = self._world.client("other")
            for response in (stranger.get(f"{JOBS}{job}/"), stranger.post(f"{JOBS}{job}/cancel/")):
                self.answers.append(Answer(None, {"stranger": job}, response.status_code, ""))

        return "a stranger asks", send

    def call_back(self) -> tuple[str, Callable[[], None]] | None:
        """A call about any task: early, twice, out of order, stale or forged, as it comes."""
        tasks = [task for task in self._world.provider.world.known() if task.request.get("callback_url")]
        if not tasks:
            return None
        task, now = self.dice.choice(tasks), self._world.scheduler.now.timestamp()
        how = self.dice.choice(("as it is", "as it is", "as it was", "stale", "forged"))
        if not self._world.adversary.inject(f"callback {how}"):
            return None
        word = task.life.word(task.life.created_at if how == "as it was" else now)
        body = FACES[task.face].callback(
            task, word, now - (1000 if how == "stale" else 0), "http://10.1.0.1:8000"
        )
        address = str(task.request["callback_url"]).removeprefix("http://localhost")
        if how == "forged":
            address = f"{address[:-8]}00000000"

        def call() -> None:
            response = self._world.client().post(address, body, content_type="application/json")
            self._world.tell(f"callback {how} about {task.id}: {word}: {response.status_code}")
            if how == "forged":
                self.forged.append(response.status_code)

        return f"callback {how}", call

    def _jobs(self) -> list[tuple[str, str]]:
        made = [answer for answer in self.answers if answer.status == 201 and answer.key]
        return sorted({(json.loads(each.content)["id"], str(each.key).partition(":")[0]) for each in made})

    def operate(self) -> tuple[str, Callable[[], None]]:
        act = self.dice.choice(
            (
                self._switch_channel,
                self._switch_channel,
                self._lower,
                self._lower_supply,
                self._rotate,
                self._republish,
                self._revoke,
            )
        )
        return act.__name__.strip("_").replace("_", " "), partial(self._as_operator, act)

    def _as_operator(self, act: Callable[[], None]) -> None:
        try:
            act()
        except StaleRevision:
            self._world.tell("an operator is told that somebody saved meanwhile")

    @property
    def _now(self) -> Any:
        return self._world.scheduler.clock()

    def _channel(self) -> Channel:
        return self.dice.choice(list(Channel.objects.order_by("id")))

    def _save(self, row: Channel, credential: Credential | None = None, **changes: Any) -> None:
        facts = replace(channel_facts(row), **changes)
        save_channel(
            facts, expected_revision=row.revision, actor=OPERATOR, now=self._now, credential=credential
        )

    def _switch_channel(self) -> None:
        row = self._channel()
        self._save(row, state="disabled" if row.state == "enabled" else "enabled")

    def _lower(self) -> None:
        self._save(self._channel(), concurrency=self.dice.choice((1, 1, 2, 3)))
        group = self.dice.choice(list(CapacityGroup.objects.order_by("id")))
        set_group_capacity(
            group.endpoint, group.account, self.dice.choice((1, 2, 3)), actor=OPERATOR, now=self._now
        )

    def _lower_supply(self) -> None:
        row = self.dice.choice(list(Supply.objects.select_related("channel").order_by("id")))
        state = self.dice.choice(("enabled", "disabled", "draining"))
        facts = replace(supply_facts(row), concurrency=self.dice.choice((1, 2)), state=state)
        save_supply(facts, expected_revision=row.revision, actor=OPERATOR, now=self._now)

    def _rotate(self) -> None:
        row = self._channel()
        secret = f"{CANARIES[row.slug.removeprefix('ark-')]}{ROTATED}-{self.dice.randrange(1000)}"
        self._save(row, Credential(secret))

    def _republish(self) -> None:
        row = self.dice.choice(list(PublicModel.objects.order_by("id")))
        withdraw_model(row, actor=OPERATOR, now=self._now)
        publish(row, actor=OPERATOR, now=self._now)

    def _revoke(self) -> None:
        revoke_key(ApiKey.objects.get(pk=self._world.keys["doomed"]), actor=OPERATOR, now=self._now)

    def heal(self) -> None:
        """Everything as usual again, so that whatever waits can end."""
        for channel in Channel.objects.order_by("id"):
            self._save(channel, state="enabled", concurrency=_USUAL[channel.slug])
        for group in CapacityGroup.objects.order_by("id"):
            set_group_capacity(group.endpoint, group.account, 3, actor=OPERATOR, now=self._now)
        for supply in Supply.objects.select_related("channel").order_by("id"):
            facts = replace(supply_facts(supply), state="enabled", concurrency=2)
            save_supply(facts, expected_revision=supply.revision, actor=OPERATOR, now=self._now)
        for model in PublicModel.objects.order_by("id"):
            publish(model, actor=OPERATOR, now=self._now)
