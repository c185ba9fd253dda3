"""The catalogue document: what is read, what is refused and where, and how a difference reads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.catalogue.difference import as_yaml, differences, lines, unnamed
from dispatch.catalogue.document import Document, read_document, schema, without_defaults
from dispatch.catalogue.resolution import resolve
from dispatch.catalogue.source import InvalidCatalogue, read_source

DEMO = (Path(__file__).parents[2] / "catalog" / "demo" / "catalogue.yaml").read_text()
NOTHING = {
    "version": 1,
    "customer_groups": {},
    "currency_rates": [],
    "channels": {},
    "capacity_groups": [],
    "supplies": {},
    "policies": {},
    "degradation_rules": {},
    "public_models": {},
}
ENVIRONMENT = {
    "FRAMEYARD_SIMULATOR_URL": "http://127.0.0.1:9000/",
    "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "beijing-secret-0001",
    "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "singapore-secret-0002",
}


def any_adapter(_provider: str, _config: object) -> list[tuple[str, str]]:
    return []


def read(text: str) -> Document:
    return read_document(text, any_adapter)


def refused(text: str) -> list[tuple[str, str, str]]:
    """Of each problem: the words of its line, its path and its message."""
    with pytest.raises(InvalidCatalogue) as caught:
        read(text)
    rows = text.splitlines()
    return [(rows[each.line - 1].strip(), each.path, each.message) for each in caught.value.problems]


def changed(old: str, new: str, text: str = DEMO) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("0o17", "0o17"),
        ("007", "007"),
        ("true", True),
        ("null", None),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ('"0.5"', "0.5"),
        ("'true'", "true"),
    ],
)
def test_words_mean_what_they_say(word: str, value: object) -> None:
    assert read_source(f"key: {word}").value == {"key": value}


def test_a_key_that_stands_twice_is_refused_at_its_second_line() -> None:
    with pytest.raises(InvalidCatalogue) as caught:
        read_source("a:\n  b: 1\n  b: 2\n")
    assert [(each.line, each.path) for each in caught.value.problems] == [(3, "a.b")]


def test_text_that_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidCatalogue) as caught:
        read_source("a: 1\nb: [1, 2\nc: 3\n")
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize("text", ["[" * 20_000, "\n".join(" " * n + "a:" for n in range(2_000))])
def test_text_that_is_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidCatalogue, match="nested too deep"):
        read_source(text)


@pytest.mark.parametrize("written", [r'"x\0y"', r'"x\ud800y"'])
def test_a_text_that_can_not_be_stored_is_refused_at_its_line(written: str) -> None:
    for text in (f"a: 1\nb: {written}\n", f"a: 1\n{written}: 2\n"):
        with pytest.raises(InvalidCatalogue, match="can't be stored") as caught:
            read_source(text)
        assert [each.line for each in caught.value.problems] == [2]


def test_an_endless_number_is_a_text() -> None:
    number = "9" * 5_000
    assert read_source(f"a: {number}").value == {"a": number}


def test_an_alias_that_holds_itself_ends() -> None:
    with pytest.raises(InvalidCatalogue, match="alias without an end"):
        read_source("a: &a\n  b: *a\n")


def test_aliases_that_multiply_end() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(InvalidCatalogue, match="alias without an end"):
        read_source("l0: &l0 [1]\n" + "\n".join(levels))


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff\u2028\u2029")
)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(texts, plain_values, max_size=4))
def test_whatever_is_written_is_read_back(value: dict[str, object]) -> None:
    assert read_source(as_yaml(value)).value == (value or {})


def test_the_demo_catalogue_is_valid() -> None:
    assert set(read(DEMO).entries["public_models"]) == {
        "seedance-2.0-933",
        "seedance-1.0-pro",
        "seedream-4.0",
    }


def test_every_problem_of_the_form_is_told_at_once_with_line_and_path() -> None:
    text = changed("concurrency: 8", "concurency: 8")
    text = changed("tier: fallback", "tier: fallbak", text)
    text = changed('rate: "0.14"', "rate: 0.14", text)
    assert [(row, path) for row, path, _ in refused(text)] == [
        ("- {from: CNY, to: USD, rate: 0.14}", "currency_rates[0].rate"),
        ("ark-beijing:", "channels.ark-beijing"),
        ("concurency: 8", "channels.ark-beijing.concurency"),
        (
            "- {supply: singapore-seedance-2-0, tier: fallbak}",
            "public_models.seedance-2.0-933.bindings[1].tier",
        ),
    ]


def test_a_missing_key_is_told_once_by_name() -> None:
    assert refused("version: 1\nchannels:\n  a: {}\n") == [
        ("a: {}", "channels.a", "base_url is missing"),
        ("a: {}", "channels.a", "concurrency is missing"),
        ("a: {}", "channels.a", "provider is missing"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            "channel: ark-singapore",
            "channel: elsewhere",
            "supplies.singapore-seedance-2-0.channel",
            "no channel",
        ),
        ("policy: image-cheap", "policy: nowhere", "public_models.seedream-4.0.policy", "no policy"),
        (
            "supply: beijing-seedream-4-0",
            "supply: beijing-seedance-2-0",
            "public_models.seedream-4.0.bindings[0].supply",
            "makes video",
        ),
        (
            "rule: 933-to-900",
            "rule: 933-to-000",
            "public_models.seedance-2.0-933.bindings[2].rule",
            "no degradation rule",
        ),
        (
            "tier: degraded, rule: 933-to-900",
            "tier: degraded",
            "public_models.seedance-2.0-933.bindings[2]",
            "rule is missing",
        ),
        (
            "tier: fallback}",
            "tier: fallback, rule: 933-to-900}",
            "public_models.seedance-2.0-933.bindings[1].rule",
            "tier degraded only",
        ),
        (
            "{supply: singapore-seedream-4-0",
            "{supply: beijing-seedream-4-0",
            "public_models.seedream-4.0.bindings[1]",
            "bound as exact already",
        ),
        (
            "    real_person_policy: allowed\n",
            "",
            "supplies.beijing-seedance-2-0",
            "real_person_policy is missing",
        ),
        (
            "    modality: image\n",
            "    modality: image\n    real_person_policy: denied\n",
            "supplies.beijing-seedream-4-0.real_person_policy",
            "video only",
        ),
        (
            "resolutions: [480p, 720p]",
            "resolutions: 720p",
            "supplies.beijing-seedance-2-0-fast.capability.document.resolutions",
            "must be a list",
        ),
        (
            "{min_s: 6, max_s: 10",
            "{min_s: 5, max_s: 10",
            "supplies.beijing-seedance-1-0-pro.price.brackets[1]",
            "overlaps",
        ),
        (
            'per_second: "1.00"',
            'per_second: "-1"',
            "supplies.beijing-seedance-2-0.price.per_second",
            "decimal",
        ),
        ("    order: cost_first\n", "    order: cheapest\n", "policies.image-cheap.order", "cheapest"),
        ("verified: true", "verified: false", "degradation_rules.933-to-900.published", "verified"),
        (
            '{from: CNY, to: USD, rate: "0.14"}',
            '{from: USD, to: USD, rate: "1"}',
            "currency_rates[0].to",
            "same",
        ),
        ('rate: "0.14"', 'rate: "0.0"', "currency_rates[0].rate", "above 0"),
        (
            "    policy: image-cheap\n",
            "    policy: image-cheap\n    allowed_groups: [nobody]\n",
            "public_models.seedream-4.0.allowed_groups[0]",
            "no customer group",
        ),
        (
            'per_request: "0.05"',
            'per_second: "0.05"',
            "public_models.seedream-4.0.price.standard.per_second",
            "does not belong",
        ),
        (
            "model_version: fast-260128",
            "sunset: 2027-02-30",
            "supplies.beijing-seedance-2-0-fast.sunset",
            "not a date",
        ),
        (
            "    account: demo-beijing\n",
            "    account: demo-beijing\n    credential_expires: 2027-02-30\n",
            "channels.ark-beijing.credential_expires",
            "not a date",
        ),
    ],
)
def test_what_one_entry_says_of_another_is_checked(old: str, new: str, path: str, message: str) -> None:
    problems = refused(changed(old, new))
    assert [each[1] for each in problems] == [path]
    assert message in problems[0][2]


def test_a_price_per_token_can_be_stored() -> None:
    text = changed(
        'mode: per_request\n      currency: CNY\n      per_request: "0.20"',
        "mode: per_token\n      currency: CNY",
    )
    assert read(text).entries["supplies"]["beijing-seedream-4-0"]["price"]["mode"] == "per_token"


def test_a_channel_of_an_unknown_provider_and_a_wrong_config_are_refused() -> None:
    def adapter(provider: str, _config: object) -> list[tuple[str, str]] | None:
        return [("retries", "is not of type 'integer'")] if provider == "ark" else None

    text = changed("provider: ark", "provider: somebody")
    text = text.replace(
        "    account: demo-singapore\n", "    account: demo-singapore\n    config:\n      retries: no\n"
    )
    with pytest.raises(InvalidCatalogue) as caught:
        read_document(text, adapter)
    told = [(each.path, text.splitlines()[each.line - 1].strip()) for each in caught.value.problems]
    assert told == [
        ("channels.ark-beijing.provider", "provider: somebody"),
        ("channels.ark-singapore.config.retries", "retries: no"),
    ]


def test_one_meaning_has_one_spelling() -> None:
    one = changed("    policy: image-cheap", '    baseline: "0.5"\n    policy: image-cheap')
    other = changed("    policy: image-cheap", '    baseline: "0.50"\n    policy: image-cheap')
    bindings = [
        f"      - {{supply: {place}-seedream-4-0, tier: exact}}\n" for place in ("beijing", "singapore")
    ]
    reordered = other.replace("".join(bindings), "".join(reversed(bindings)))
    assert reordered != other
    assert read(one).entries == read(other).entries == read(reordered).entries


def test_leaving_defaults_out_and_filling_them_in_are_inverses() -> None:
    entries = read(DEMO).entries
    shorter = as_yaml(without_defaults(entries, schema()))
    assert "state: enabled" not in shorter
    assert read(shorter).entries == entries


def test_addresses_and_secrets_come_from_the_environment() -> None:
    resolved = resolve(read(DEMO), NOTHING, ENVIRONMENT, frozenset())
    assert resolved.entries["channels"]["ark-beijing"]["base_url"] == "http://127.0.0.1:9000/ark/api/v3"
    assert resolved.secrets == {
        "ark-beijing": "beijing-secret-0001",
        "ark-singapore": "singapore-secret-0002",
    }
    assert "secret" not in repr(resolved)


def unresolved(
    text: str, environment: dict[str, str], sealed: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    with pytest.raises(InvalidCatalogue) as caught:
        resolve(read(text), NOTHING, environment, sealed)
    rows = text.splitlines()
    return [(each.path, rows[each.line - 1].strip()) for each in caught.value.problems]


def test_a_variable_that_is_not_set_is_an_error_at_its_line() -> None:
    without_key = {key: value for key, value in ENVIRONMENT.items() if "BEIJING" not in key}
    assert unresolved(DEMO, without_key) == [
        ("channels.ark-beijing.credential.env", "credential: {env: FRAMEYARD_DEMO_ARK_BEIJING_KEY}")
    ]
    assert [path for path, _ in unresolved(DEMO, {})] == [
        "channels.ark-beijing.base_url",
        "channels.ark-singapore.base_url",
    ]


def test_a_channel_that_has_a_credential_needs_no_variable() -> None:
    address_only = {"FRAMEYARD_SIMULATOR_URL": "http://127.0.0.1:9000"}
    both = frozenset({"ark-beijing", "ark-singapore"})
    assert resolve(read(DEMO), NOTHING, address_only, both).secrets == {}


def test_the_first_limit_of_a_group_is_the_largest_concurrency_of_its_channels() -> None:
    text = changed("account: demo-singapore", "account: demo-beijing")
    groups = resolve(read(text), NOTHING, ENVIRONMENT, frozenset()).entries["capacity_groups"]
    assert groups == [
        {"endpoint": "http://127.0.0.1:9000/ark/api/v3", "account": "demo-beijing", "capacity": 8}
    ]


def test_a_limit_that_is_not_listed_stays_what_the_operator_made_it() -> None:
    group = {"endpoint": "http://127.0.0.1:9000/ark/api/v3", "account": "demo-beijing", "capacity": 3}
    stored = {**NOTHING, "capacity_groups": [group]}
    assert group in resolve(read(DEMO), stored, ENVIRONMENT, frozenset()).entries["capacity_groups"]


def test_a_limit_for_no_channel_is_refused() -> None:
    text = (
        DEMO
        + "\ncapacity_groups:\n  - {endpoint: https://ark.example.com, account: demo-beijing, capacity: 3}\n"
    )
    assert [path for path, _ in unresolved(text, ENVIRONMENT)] == ["capacity_groups[0]"]


def difference_of(old: str, new: str) -> list[str]:
    before, after = read(DEMO).entries, read(changed(old, new)).entries
    return list(lines(differences(before, after)))


def test_equal_documents_do_not_differ() -> None:
    assert differences(read(DEMO).entries, read(DEMO).entries) == []


def test_a_changed_fact_is_one_line() -> None:
    assert difference_of("concurrency: 8", "concurrency: 9") == ["~ channels.ark-beijing.concurrency: 8 → 9"]
    assert difference_of('per_request: "0.20"', 'per_request: "0.25"') == [
        "~ supplies.beijing-seedream-4-0.price.per_request: '0.20' → '0.25'"
    ]


def test_bindings_are_compared_by_supply_and_tier() -> None:
    path = "public_models.seedance-1.0-pro.bindings[singapore-seedance-1-0-pro exact]"
    assert difference_of("priority: 100", "priority: 900") == [f"~ {path}.priority: 100 → 900"]
    gone = difference_of("      - {supply: singapore-seedance-1-0-pro, tier: exact, priority: 100}\n", "")
    assert gone[0] == f"- {path}:"
    assert "-   {supply: singapore-seedance-1-0-pro, tier: exact, priority: 100, enabled: true}" in gone


def test_an_entry_that_the_document_does_not_name_is_listed_and_is_no_change() -> None:
    before, after = (
        read(DEMO).entries,
        read("version: 1\ncustomer_groups: {studio: {name: Studio customers}}").entries,
    )
    assert differences(before, after) == []
    assert "channels.ark-beijing" in unnamed(before, after)
    assert "customer_groups.studio" not in unnamed(before, after)
