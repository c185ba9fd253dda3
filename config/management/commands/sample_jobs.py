"""`manage.py sample_jobs URL`: a job per modality through the public API, and why each went where it went."""

import os
import textwrap
import time
import uuid
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from catalog.models import Modality, PublicModel
from config import demo_content
from config.installation import DEMO_API_KEY
from dispatch.lifecycle import FINAL_JOB_STATES, JobState
from dispatch.models import Asset, SelectionRound
from dispatch.routing.explain import explain
from dispatch.routing.rendering import rendered

_CALL_TIMEOUT_S = 30
_INDENT = "    "


@dataclass
class _Sample:
    """A job of this command, and what the API said of it last."""

    model: PublicModel
    posted_s: float
    answer: dict[str, Any]
    took_s: float = 0

    @property
    def is_final(self) -> bool:
        return self.answer["state"] in FINAL_JOB_STATES


class Command(BaseCommand):
    help = "Submit a sample job per modality with the demo key, and print its explanation and its file."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="where the web server answers, e.g. http://127.0.0.1:8000")
        parser.add_argument("--within", type=float, default=90, help="seconds to wait for the results")

    def handle(self, *_: Any, **options: Any) -> None:
        if not demo_content.is_all_simulated():
            self.stdout.write(
                "No sample job is submitted: a channel of this catalogue leads to a real provider."
            )
            return
        api = _Api(options["url"], os.environ[DEMO_API_KEY])
        samples = [api.submit(model) for model in _models()]
        deadline_s = time.monotonic() + options["within"]
        while not all(sample.is_final for sample in samples) and time.monotonic() < deadline_s:
            time.sleep(0.2)
            for sample in samples:
                api.look(sample)
        for sample in samples:
            self.stdout.write(_story(sample))
        if any(sample.answer["state"] != JobState.SUCCEEDED for sample in samples):
            raise CommandError(f"Not every sample job succeeded within {options['within']:.0f} s.")


class _Api:
    """The customer API, as a customer calls it."""

    def __init__(self, url: str, key: str) -> None:
        self._jobs = f"{url}/api/v1/jobs/"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {key}"

    def submit(self, model: PublicModel) -> _Sample:
        body = {"model": model.slug, **model.example_requests[0]}
        headers = {"Idempotency-Key": f"sample-{uuid.uuid4()}"}
        response = self._session.post(self._jobs, json=body, headers=headers, timeout=_CALL_TIMEOUT_S)
        return _Sample(model, time.monotonic(), _body(response))

    def look(self, sample: _Sample) -> None:
        if not sample.is_final:
            answer = _body(self._session.get(f"{self._jobs}{sample.answer['id']}/", timeout=_CALL_TIMEOUT_S))
            sample.answer, sample.took_s = answer, time.monotonic() - sample.posted_s


def _body(response: requests.Response) -> dict[str, Any]:
    if not response.ok:
        raise CommandError(f"The API answered {response.status_code}: {response.text[:500]}")
    return dict(response.json())


def _models() -> list[PublicModel]:
    """The first published model of each modality that has an example to show."""
    published = PublicModel.objects.filter(published=True, enabled=True).exclude(example_requests=[])
    firsts = (published.filter(modality=modality).order_by("pk").first() for modality in Modality)
    return [model for model in firsts if model]


def _story(sample: _Sample) -> str:
    job = sample.answer["id"]
    lines = [f"\n{sample.model.modality} {job}: {sample.answer['state']} after {sample.took_s:.1f} s"]
    if sample.answer["error"]:
        lines.append(f"{_INDENT}{sample.answer['error']['code']}: {sample.answer['error']['message']}")
    for round_ in SelectionRound.objects.filter(job__public_id=job).order_by("-number")[:1]:
        lines.append(textwrap.indent(rendered(explain(round_.snapshot)), _INDENT).rstrip())
    for asset in Asset.objects.filter(attempt__job__public_id=job, kind=Asset.Kind.OUTPUT):
        lines.append(f"{_INDENT}Delivered: {Path(settings.MEDIA_DIR) / asset.path}")
    return "\n".join(lines)
