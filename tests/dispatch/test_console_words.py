"""Every code has a word, every word a translation, and the vendored scripts are the published ones."""

import ast
import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest
from django.conf import settings
from django.template.loader import get_template, render_to_string
from django.utils import translation

from billing.models import CreditEntry, ProviderUsageEntry
from catalog.models import DegradationMode, Lifecycle, Modality, Tier
from catalog.providers.types import (
    AssetWay,
    CallbackSignature,
    CancelOutcome,
    CancelSupport,
    Recovery,
    Status,
)
from dispatch import gates
from dispatch.drafting import fields, notices, reading
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import ProviderEvent, ServiceClass
from dispatch.queries.timeline import PHASES
from dispatch.routing import counterfactual, effect, explain, reasons, replay
from dispatch.views import model_sentences, model_words, snapshot_words, vocabulary
from dispatch.views.sentences import EXPLANATION
from health.alerts import SEVERITIES
from health.circuit import Kind
from health.models import STATES, AlertDelivery

ROOT = Path(settings.BASE_DIR)
CATALOGUE = ROOT / "config" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
_PLACE = re.compile(r"%\(\w+\)s|\{\w+\}")  # of a value in a sentence
FAMILIES: dict[str, Iterable[object]] = {
    "JOB_STATES": list(JobState),
    "ATTEMPT_STATES": list(AttemptState),
    "HEALTH": STATES,
    "TIERS": Tier.values,
    "TIER_NAMES": Tier.values,
    "MODALITIES": Modality.values,
    "SERVICE_CLASSES": ServiceClass.values,
    "SEVERITIES": sorted(set(SEVERITIES.values()) | {"info"}),
    "ALERTS": sorted(SEVERITIES),
    "DELIVERIES": [*AlertDelivery.Means.values, *AlertDelivery.State.values],
    "EVENT_KINDS": ProviderEvent.Kind.values,
    "USAGE_KINDS": ProviderUsageEntry.Kind.values,
    "CREDIT_KINDS": CreditEntry.Kind.values,
    "PHASES": list(PHASES),
    "ROUND_OUTCOMES": sorted(explain.OUTCOMES),
    "ORDERS": sorted(explain.ORDERS),
    "MODEL_STATES": ["draft", "enabled", "published", "saved", "withdrawn"],
    "LIFECYCLES": Lifecycle.values,
    "DEGRADATION": DegradationMode.values,
    "RECOVERIES": get_args(Recovery.__value__),
    "CANCELS": get_args(CancelSupport.__value__),
    "CALLBACK_SIGNATURES": get_args(CallbackSignature.__value__),
    "ASSET_WAYS": get_args(AssetWay.__value__),
    "TIER_TITLES": Tier.values,
    "EVENT_OUTCOMES": [*get_args(Status.__value__), *get_args(CancelOutcome.__value__)],
    "EVIDENCE": list(Kind),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_stored_code_has_a_word(family: str) -> None:
    words = getattr(vocabulary, family)
    assert {str(code) for code in FAMILIES[family]} <= set(words)


@pytest.mark.parametrize("name", [name for name in vars(vocabulary) if name.isupper()])
def test_i2_every_word_is_translated(name: str) -> None:
    words = getattr(vocabulary, name)
    with translation.override("zh-hans"):
        chinese = {code: str(text) for code, text in words.items()}
    assert not [code for code, text in chinese.items() if text.isascii()]


def test_the_explanations_sentences_are_those_that_the_router_speaks() -> None:
    spoken = {
        *explain.TITLES,
        *explain.OUTCOMES.values(),
        *explain.ORDERS.values(),
        *explain.FLAGS.values(),
        *reasons.KEYS.values(),
        *(reason.sentence for reason in reasons.REASONS.values()),
        *_sentences_in_calls(Path(explain.__file__)),
        *explain._LIMITS.values(),
    }
    assert set(EXPLANATION) == spoken
    with translation.override("zh-hans"):
        assert not [each for each in EXPLANATION if translation.gettext(each).isascii()]


def test_the_sentences_about_models_are_those_that_the_rules_speak() -> None:
    assert set(model_sentences.FAULTS) == set(reading.FAULTS)
    assert set(model_sentences.NOTICES) == set(notices.NOTICES)
    written = _texts_in(Path(gates.__file__))
    assert _sentences_in_calls(Path(gates.__file__)) <= set(model_sentences.GATES) <= written
    assert set(model_sentences.WHY_NOT) == {
        text for text in _texts_in(Path(counterfactual.__file__)) if text.startswith("{loser} would have won")
    }
    with translation.override("zh-hans"):
        said = {each for name, of in vars(model_sentences).items() if name.isupper() for each in of}
        assert not [each for each in said - {"{problem}"} if translation.gettext(each).isascii()]


def test_i2_why_a_round_cant_be_routed_again_is_said_in_words() -> None:
    """Each text that those rules raise, with something in its places."""
    reasons = {
        each for module in (replay, effect, counterfactual) for each in _raised_in(Path(module.__file__))
    }
    assert len(reasons) == len(snapshot_words.UNREPLAYED)
    with translation.override("zh-hans"):
        assert not [each for each in reasons if snapshot_words.unreplayed_said(each).isascii()]


def _raised_in(module: Path) -> set[str]:
    raised = [node.exc for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Raise)]
    texts = [each.args[0] for each in raised if isinstance(each, ast.Call)]
    return {
        "".join(str(part.value) if isinstance(part, ast.Constant) else "USD" for part in text.values)
        for text in texts
        if isinstance(text, ast.JoinedStr)
    }


def test_every_parameter_and_field_that_is_edited_has_words() -> None:
    assert set(fields.PARAMETERS) <= set(model_words.WORDS)
    assert set(fields.PARAMETERS) == {name for _title, names in model_words.GROUPS for name in names}
    assert set(fields.OF_BINDING) == set(model_words.BINDING_FIELDS)
    assert set(fields.OF_MODEL) == set(model_words.MODEL_FIELDS)
    with translation.override("zh-hans"):
        words = [text for each in model_words.WORDS.values() for text in (each.label, each.help)]
        assert not [text for text in words if str(text).isascii()]


def _sentences_in_calls(module: Path) -> set[str]:
    """The sentences given as they are to Note and _money."""
    calls = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call))
    first = (call.args[0] for call in calls if getattr(call.func, "id", "") in ("Note", "_money"))
    return {str(arg.value) for arg in first if isinstance(arg, ast.Constant)}


def _texts_in(module: Path) -> set[str]:
    tree = ast.walk(ast.parse(module.read_text()))
    return {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_the_catalogue_of_translations_has_no_gap_and_no_guess() -> None:
    text = CATALOGUE.read_text()
    assert "fuzzy" not in text
    body = text.split("\n\n", 1)[1]
    assert not re.findall(r'^msgstr(?:\[0\])? ""\n(?!")', body + "\n", re.MULTILINE)


def test_i4_each_term_of_the_glossary_has_one_translation() -> None:
    """Where the English says one of these, the Chinese says its one term."""
    glossary = {
        "acknowledge": "确认收到",
        "degraded delivery": "降级交付",
        "public model": "公开模型",
        "selection round": "选择轮次",
        "supply binding": "供给绑定",
        "idempotency key": "幂等键",
        "slot": "槽位",
        "circuit": "熔断",
        "operator": "操作员",
        "unknown slot": "占用未知的槽位",
        "attempt": "尝试",
        "candidate": "候选",
        "channel": "渠道",
        "cost rule": "成本规则",
        "credential": "凭据",
        "job": "任务",
        "leased,": "已租用",
        "leases": "租约",
        "ledger": "账本",
        "maintenance": "维护",
        "policy": "策略",
        "provider": "供应商",
        "refusal": "拒绝",
        "revision": "修订",
        "supply": "供给",
        "working copy": "工作副本",
    }
    with translation.override("zh-hans"):
        for sentence in _msgids():
            chinese = translation.gettext(sentence)
            for english, term in glossary.items():
                said = _PLACE.sub("", sentence).lower().replace("role operator", "role")  # roles go by code
                if english in said and not chinese.isascii():
                    assert term in chinese, sentence


def _msgids() -> list[str]:
    quoted = re.findall(r'^msgid "(.+)"$', CATALOGUE.read_text(), re.MULTILINE)
    return [text.replace('"', '"') for text in quoted]


def test_every_template_can_be_read() -> None:
    folder = ROOT / "templates"
    for path in sorted(folder.rglob("*.html")):
        get_template(str(path.relative_to(folder)))
    assert "This page could not be made" in render_to_string("500.html")


def test_the_vendored_scripts_are_those_of_the_package() -> None:
    vendor = ROOT / "static" / "vendor"
    row = re.compile(r"`([\w.-]+\.js)` \| `[^`]+` \| `sha384-([^`]+)`")
    table = dict(row.findall((vendor / "README.md").read_text()))
    assert set(table) == {path.name for path in vendor.glob("*.js")}
    for name, integrity in table.items():
        digest = hashlib.sha384((vendor / name).read_bytes()).digest()
        assert base64.b64encode(digest).decode() == integrity
