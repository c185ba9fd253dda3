"""`manage.py catalogue`: a document becomes the catalogue, once, whole or not at all."""

import io
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from billing.models import CostRuleVersion, CurrencyRateVersion
from catalog.audit import Actor
from catalog.credentials import read_credential
from catalog.exceptions import StaleRevision
from catalog.models import (
    AuditEntry,
    CapabilityVersion,
    CapacityGroup,
    Channel,
    DispatchPolicy,
    ModelRevision,
    PublicModel,
    Supply,
    SupplyBinding,
)
from catalog.revision import current_revision
from dispatch.catalogue.difference import as_yaml, lines
from dispatch.catalogue.document import schema, without_defaults
from dispatch.catalogue.repository import stored_entries
from dispatch.catalogue.source import InvalidCatalogue
from dispatch.services.import_catalogue import Plan, apply_import, plan_import

pytestmark = pytest.mark.django_db

DEMO = (Path(__file__).parents[2] / "catalog" / "demo" / "catalogue.yaml").read_text()
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ACTOR = Actor("command:catalogue import", "command")
ENVIRONMENT = {
    "FRAMEYARD_SIMULATOR_URL": "http://127.0.0.1:9000",
    "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "beijing-secret-0001",
    "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "singapore-secret-0002",
}


def imported(text: str = DEMO, now: datetime = NOW, environment: dict[str, str] | None = None) -> Plan:
    plan = plan_import(text, environment or ENVIRONMENT, now)
    apply_import(plan, actor=ACTOR, now=now)
    return plan


def changed(*pairs: tuple[str, str]) -> str:
    text = DEMO
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def shown(plan: Plan) -> list[str]:
    return list(lines(plan.changes))


def counts() -> dict[str, int]:
    tables = (
        AuditEntry,
        CapabilityVersion,
        CostRuleVersion,
        CurrencyRateVersion,
        DispatchPolicy,
        ModelRevision,
    )
    return {table.__name__: table.objects.count() for table in tables}


def test_the_demo_catalogue_serves_after_one_import() -> None:
    imported()
    assert set(PublicModel.objects.filter(enabled=True, published=True).values_list("slug", flat=True)) == {
        "seedance-2.0-933",
        "seedance-1.0-pro",
        "seedream-4.0",
    }
    tiers = SupplyBinding.objects.filter(public_model__slug="seedance-2.0-933").values_list("tier", flat=True)
    assert sorted(tiers) == ["degraded", "exact", "fallback"]
    assert Supply.objects.filter(capability_version=None).count() == 0


def test_a_second_import_has_nothing_to_change() -> None:
    imported()
    before, revision = counts(), current_revision()
    plan = imported(now=LATER)
    assert plan.changes == []
    assert (counts(), current_revision()) == (before, revision)


def test_what_is_exported_imports_as_no_change_and_exports_the_same() -> None:
    imported()
    text = as_yaml(without_defaults(stored_entries(LATER), schema()))
    plan = imported(text, now=LATER, environment={"NOTHING": "is needed"})
    assert plan.changes == []
    assert as_yaml(without_defaults(stored_entries(LATER), schema())) == text


def test_an_export_makes_the_same_catalogue_on_an_empty_installation() -> None:
    imported()
    entries = stored_entries(LATER)
    again = plan_import(as_yaml(without_defaults(entries, schema())), ENVIRONMENT, LATER)
    assert again.entries == entries


def test_the_export_holds_no_secret() -> None:
    imported()
    text = json.dumps(stored_entries(LATER)) + json.dumps(list(AuditEntry.objects.values("before", "after")))
    assert "secret-0001" not in text
    assert "FRAMEYARD_DEMO_ARK_BEIJING_KEY" in text


def test_a_catalogue_that_changed_since_it_was_looked_at_is_not_overwritten() -> None:
    imported()
    plan = plan_import(changed(("concurrency: 8", "concurrency: 9")), ENVIRONMENT, LATER)
    imported(changed(("concurrency: 5\n    real", "concurrency: 4\n    real")), now=LATER)
    with pytest.raises(StaleRevision):
        apply_import(plan, actor=ACTOR, now=LATER)
    assert Channel.objects.get(slug="ark-beijing").concurrency == 8


@pytest.mark.django_db(transaction=True)
def test_a_model_that_fails_a_gate_undoes_the_whole_import() -> None:
    text = changed(("    account: demo-beijing\n", "    account: demo-beijing\n    state: disabled\n"))
    with pytest.raises(InvalidCatalogue) as caught:
        imported(text)
    problem = caught.value.problems[0]
    assert problem.path == "public_models.seedance-2.0-933.publish"
    assert text.splitlines()[problem.line - 1].strip() == "publish: true"
    assert "gate 1" in problem.message
    assert (Channel.objects.count(), AuditEntry.objects.count(), current_revision()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (
            "    provider: ark\n    region: cn",
            "    provider: other\n    region: cn",
            "channels.ark-beijing.provider",
        ),
        ("    channel: ark-singapore", "    channel: ark-beijing", "supplies.singapore-seedance-2-0.channel"),
        (
            "        max_videos: 0",
            "        max_videos: 1",
            "supplies.beijing-seedance-2-0-fast.capability.label",
        ),
        (
            "drop_inputs: [reference_videos, reference_audios]",
            "drop_inputs: [reference_videos]",
            "degradation_rules.933-to-900.drop_inputs",
        ),
    ],
)
def test_what_can_never_change_is_refused_with_its_path(old: str, new: str, path: str) -> None:
    imported()
    with pytest.raises(InvalidCatalogue) as caught:
        imported(changed((old, new)), now=LATER)
    assert [each.path for each in caught.value.problems] == [path]


def test_a_changed_price_is_a_new_version_and_the_old_one_ends_where_it_begins() -> None:
    imported()
    plan = imported(changed(('per_request: "0.20"', 'per_request: "0.25"')), now=LATER)
    assert shown(plan) == ["~ supplies.beijing-seedream-4-0.price.per_request: '0.20' → '0.25'"]
    old, new = CostRuleVersion.objects.filter(rule__supply__slug="beijing-seedream-4-0").order_by("number")
    assert (old.effective_to, new.effective_from, new.effective_to) == (LATER, LATER, None)
    assert (old.document["per_request"], new.document["per_request"], new.number) == ("0.20", "0.25", 2)
    assert PublicModel.objects.get(slug="seedream-4.0").published  # a price is not the model's


def test_a_price_that_is_taken_away_ends() -> None:
    imported()
    price = '    price:\n      mode: per_request\n      currency: USD\n      per_request: "0.03"\n'
    imported(
        changed((price, ""), ("publish: true\n\n  seedance-1", "publish: true\n\n  seedance-1")), now=LATER
    )
    version = CostRuleVersion.objects.get(rule__supply__slug="singapore-seedream-4-0")
    assert version.effective_to == LATER


def test_a_changed_capability_with_a_new_label_is_a_new_version() -> None:
    imported()
    before, fast = DEMO.split("  beijing-seedance-2-0-fast:\n")
    fast = fast.replace('label: "2026-01"', 'label: "2026-02"', 1).replace(
        "max_videos: 0", "max_videos: 1", 1
    )
    text = f"{before}  beijing-seedance-2-0-fast:\n{fast}"
    imported(text, now=LATER)
    supply = Supply.objects.get(slug="beijing-seedance-2-0-fast")
    old, new = supply.capability_versions.order_by("effective_from")
    assert supply.capability_version == new
    assert (old.effective_to, new.effective_from, new.label) == (LATER, LATER, "2026-02")


def test_a_changed_rate_is_a_new_version() -> None:
    imported()
    imported(changed(('rate: "0.14"', 'rate: "0.15"')), now=LATER)
    rates = CurrencyRateVersion.objects.order_by("effective_from").values_list("rate", "effective_from")
    assert [(str(rate.normalize()), at) for rate, at in rates] == [("0.14", NOW), ("0.15", LATER)]


def test_a_changed_policy_is_a_new_version_for_the_models_that_use_it() -> None:
    imported()
    imported(
        changed(("    shadow_order: cost_first\n", "    shadow_order: cost_first\n    min_samples: 30\n")),
        now=LATER,
    )
    model = PublicModel.objects.select_related("policy").get(slug="seedance-2.0-933")
    assert (model.policy.slug, model.policy.version, model.revision) == ("video-stable", 2, 2)
    assert model.published  # the document says publish: true, and the gates let it
    assert PublicModel.objects.get(slug="seedance-1.0-pro").revision == 1


def test_two_changes_at_one_instant_are_refused() -> None:
    imported()
    with pytest.raises(InvalidCatalogue, match="needs a later time"):
        imported(changed(('rate: "0.14"', 'rate: "0.15"')), now=NOW)


def test_a_changed_model_is_unpublished_until_somebody_publishes_it() -> None:
    silent = DEMO.replace("    publish: true\n", "")
    imported()
    plan = imported(silent.replace("priority: 100", "priority: 900"), now=LATER)
    model = PublicModel.objects.get(slug="seedance-1.0-pro")
    assert (model.enabled, model.published, model.revision, model.published_revision) == (False, False, 2, 1)
    assert "~ public_models.seedance-1.0-pro.publish: true → false" in shown(plan)
    assert PublicModel.objects.get(slug="seedream-4.0").published


def test_publish_false_withdraws() -> None:
    imported()
    imported(DEMO.replace("publish: true", "publish: false"), now=LATER)
    assert not PublicModel.objects.filter(published=True).exists()
    assert AuditEntry.objects.filter(action="withdraw model").count() == 3


def test_each_saved_model_leaves_a_revision_that_says_everything() -> None:
    imported()
    document = ModelRevision.objects.get(public_model__slug="seedance-2.0-933", number=1).document
    assert document["model"]["policy"] == "video-stable@1"
    assert document["policy"]["order"] == "stable_first"
    assert document["rules"]["933-to-900"]["drop_inputs"] == ["reference_videos", "reference_audios"]
    assert [binding["tier"] for binding in document["model"]["bindings"]] == ["exact", "fallback", "degraded"]


def test_credentials_are_sealed_and_shown_by_their_last_four_characters() -> None:
    imported()
    channel = Channel.objects.get(slug="ark-beijing")
    assert "secret" not in channel.credential
    assert read_credential(channel) == "beijing-secret-0001"
    assert (channel.credential_hint, channel.credential_reference) == (
        "0001",
        "env:FRAMEYARD_DEMO_ARK_BEIJING_KEY",
    )


def test_a_rotated_secret_is_one_change_that_shows_four_characters() -> None:
    imported()
    plan = imported(
        now=LATER, environment=ENVIRONMENT | {"FRAMEYARD_DEMO_ARK_BEIJING_KEY": "beijing-secret-0009"}
    )
    assert shown(plan) == ["~ channels.ark-beijing.credential.secret: …0001 → …0009"]
    assert read_credential(Channel.objects.get(slug="ark-beijing")) == "beijing-secret-0009"


def test_a_stored_secret_that_does_not_open_is_replaced_by_an_import() -> None:
    imported()
    Channel.objects.filter(slug="ark-beijing").update(credential='{"key": "lost"}')
    assert shown(imported(now=LATER)) == ["~ channels.ark-beijing.credential.secret: does not open → …0001"]
    assert read_credential(Channel.objects.get(slug="ark-beijing")) == "beijing-secret-0001"


def test_a_variable_with_another_name_keeps_the_secret() -> None:
    imported()
    text = changed(("{env: FRAMEYARD_DEMO_ARK_BEIJING_KEY}", "{env: ANOTHER_NAME}"))
    imported(text, now=LATER)
    channel = Channel.objects.get(slug="ark-beijing")
    assert (read_credential(channel), channel.credential_reference) == (
        "beijing-secret-0001",
        "env:ANOTHER_NAME",
    )


def test_channels_of_one_endpoint_and_account_share_a_group() -> None:
    referred = "region: ap-southeast-1\n    base_url: {env: FRAMEYARD_SIMULATOR_URL, path: /ark/api/v3}"
    spelled_otherwise = "region: ap-southeast-1\n    base_url: HTTP://127.0.0.1:9000/ark/api/v3/"
    imported(changed((referred, spelled_otherwise), ("account: demo-singapore", "account: demo-beijing")))
    group = CapacityGroup.objects.get()
    assert (group.channels.count(), group.capacity) == (2, 8)


def test_an_operators_limit_survives_an_import_that_does_not_name_it() -> None:
    imported()
    CapacityGroup.objects.filter(account="demo-beijing").update(capacity=3)
    assert imported(now=LATER).changes == []
    assert CapacityGroup.objects.get(account="demo-beijing").capacity == 3


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def demo_file(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.yaml"
    path.write_text(DEMO)
    return path


def catalogue(*arguments: str) -> str:
    output = io.StringIO()
    call_command("catalogue", *arguments, stdout=output)
    return output.getvalue()


@pytest.mark.usefixtures("environment")
def test_import_shows_the_difference_then_applies_it(demo_file: Path) -> None:
    output = catalogue("import", str(demo_file), "--yes")
    assert "+ channels.ark-beijing:" in output
    assert output.endswith("Applied.\n")
    assert catalogue("import", str(demo_file), "--yes") == "Nothing to change.\n"


@pytest.mark.usefixtures("environment")
def test_a_dry_run_changes_nothing(demo_file: Path) -> None:
    assert "nothing was changed" in catalogue("import", str(demo_file), "--dry-run")
    assert (Channel.objects.count(), current_revision()) == (0, 0)


@pytest.mark.usefixtures("environment")
def test_import_without_somebody_to_ask_applies_nothing(demo_file: Path) -> None:
    with pytest.raises(CommandError, match="nobody to ask"):
        catalogue("import", str(demo_file))
    assert Channel.objects.count() == 0


def test_check_names_file_line_and_path_and_ends_with_2(demo_file: Path) -> None:
    demo_file.write_text(DEMO.replace("tier: fallback", "tier: fallbak"))
    line = (
        demo_file.read_text().splitlines().index("      - {supply: singapore-seedance-2-0, tier: fallbak}")
        + 1
    )
    errors = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("catalogue", "check", str(demo_file), stderr=errors)
    assert caught.value.returncode == 2
    assert errors.getvalue().startswith(
        f"{demo_file}:{line}: public_models.seedance-2.0-933.bindings[1].tier: "
    )


def test_check_needs_neither_environment_nor_database(demo_file: Path, django_db_blocker: object) -> None:
    with django_db_blocker.block():  # type: ignore[attr-defined]
        assert "nothing is wrong" in catalogue("check", str(demo_file))


def test_check_needs_no_settings_either(demo_file: Path) -> None:
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "catalogue", "check", str(demo_file)]
    finished = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.usefixtures("environment")
def test_standard_output_is_read_from_standard_input(
    demo_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue("import", str(demo_file), "--yes")
    monkeypatch.setattr(sys, "stdin", io.StringIO(catalogue("export", "-")))
    assert catalogue("import", "-", "--yes") == "Nothing to change.\n"


def test_a_file_that_is_not_there_ends_with_2() -> None:
    with pytest.raises(CommandError) as caught:
        catalogue("check", "/nowhere/catalogue.yaml")
    assert caught.value.returncode == 2
