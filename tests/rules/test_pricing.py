from typing import Any

import pytest

from billing.money import MoneyError, half_up, micros_of, written
from billing.pricing import parse_price, quote, quote_micros
from catalog.document import DocumentError
from catalog.shape import ImageShape, VideoShape
from tests.rules.scenarios import fixed, per_request, per_second

FIVE_SECONDS = VideoShape("text_to_video", duration_s=5, resolution="720p")


def cost(document: dict[str, Any], shape: VideoShape = FIVE_SECONDS) -> int | None:
    return quote_micros(parse_price(document, "video"), shape)


def test_five_seconds_cost_the_whole_bracket_of_four_to_fifteen() -> None:
    assert cost(fixed("6.00")) == 6_000_000


def test_a_bracket_that_holds_the_duration_goes_before_the_unit_price() -> None:
    price = per_second("0.30", brackets=[{"min_s": 4, "max_s": 6, "fixed": "2.00"}])
    quotes = [cost(price, VideoShape("text_to_video", duration_s=seconds)) for seconds in (3, 4, 5, 6, 7)]
    assert quotes == [900_000, 2_000_000, 2_000_000, 2_000_000, 2_100_000]


def test_a_duration_outside_every_bracket_has_no_price_where_there_are_only_brackets() -> None:
    assert cost(fixed("6.00", min_s=6, max_s=10)) is None


def test_a_shorter_video_is_charged_as_the_minimum() -> None:
    assert cost(per_second("0.30", min_s=8)) == 2_400_000


def test_seconds_are_charged_in_whole_steps() -> None:
    assert cost(per_second("0.10", step_s=3)) == 600_000


def test_multipliers_apply_in_order_where_their_condition_holds() -> None:
    multipliers = [
        {"when": {"resolution": "720p"}, "factor": "1.5"},
        {"when": {"resolution": "1080p"}, "factor": "9"},
        {"when": {"audio": False, "mode": "text_to_video"}, "factor": "1.333"},
    ]
    assert cost(per_second("0.30", multipliers=multipliers)) == 2_999_250


def test_an_amount_is_rounded_once_at_the_end_and_a_half_goes_up() -> None:
    thirds = [{"when": {}, "factor": "0.333333"}] * 2
    assert cost(per_second("0.0000001", multipliers=[])) == 1  # five times a tenth of a micro
    assert cost(per_second("0.00000009", multipliers=[])) == 0
    assert cost(per_second("1.00", multipliers=thirds)) == 555_554  # 5 × 0.333333², not rounded between


def test_a_price_per_request_and_a_price_per_second_are_not_mistaken() -> None:
    fifteen = VideoShape("text_to_video", duration_s=15)
    assert cost(per_request("2.5"), fifteen) == 2_500_000
    assert cost(per_second("2.5"), fifteen) == 37_500_000


def test_a_price_of_nothing_is_a_price_and_no_price_is_none() -> None:
    assert cost(per_second("0")) == 0
    assert cost(per_second("0.30"), VideoShape("text_to_video")) is None


def test_images_cost_n_times_the_price_of_one() -> None:
    price = parse_price(per_request("0.0001"), "image")
    assert quote_micros(price, ImageShape("text_to_image", n=3)) == 300


def test_samples_of_a_video_are_each_charged() -> None:
    assert cost(per_second("0.30"), VideoShape("text_to_video", duration_s=5, sample_count=2)) == 3_000_000


def test_credits_of_a_provider_cost_what_one_of_them_costs() -> None:
    assert cost(per_second("5", per_credit="0.01")) == 250_000


def test_a_quote_names_both_currencies_and_each_is_rounded_from_the_exact_amount() -> None:
    price = parse_price(per_second("0.333333333", currency="CNY"), "video")
    quoted = quote(price, FIVE_SECONDS, "USD", {"CNY": (1391, 10_000)})
    assert quoted is not None
    assert (quoted.native_micros, quoted.native_currency) == (1_666_667, "CNY")
    assert (quoted.micros, quoted.currency) == (231_833, "USD")


def test_without_a_rate_there_is_no_quote() -> None:
    price = parse_price(per_second("0.30", currency="JPY"), "video")
    assert quote(price, FIVE_SECONDS, "USD", {}) is None


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"per_second": "-1"}, "price.per_second"),
        ({"per_second": "1e3"}, "price.per_second"),
        ({"per_second": None}, "price.per_second"),
        ({"currency": "usd"}, "price.currency"),
        ({"mode": "per_token"}, "price.mode"),
        ({"per_request": "1"}, "price.per_request"),
        ({"colour": "red"}, "price.colour"),
        ({"min_s": "5"}, "price.min_s"),
        ({"step_s": 0}, "price.step_s"),
        ({"multipliers": [{"when": {"colour": "red"}, "factor": "1"}]}, "price.multipliers[0].when.colour"),
        ({"multipliers": [{"when": {"audio": "yes"}, "factor": "1"}]}, "price.multipliers[0].when.audio"),
        ({"multipliers": [{"when": {}}]}, "price.multipliers[0].factor"),
        ({"brackets": [{"min_s": 9, "max_s": 4, "fixed": "1"}]}, "price.brackets[0].min_s"),
        (
            {"brackets": [{"min_s": 4, "max_s": 8, "fixed": "1"}, {"min_s": 8, "max_s": 9, "fixed": "2"}]},
            "price.brackets[1]",
        ),
    ],
)
def test_a_wrong_price_is_refused_by_the_path_of_what_is_wrong(change: dict[str, Any], path: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_price(per_second("0.30") | change, "video")
    assert refused.value.path == path


def test_an_images_price_can_not_speak_of_real_persons() -> None:
    document = per_request("0.04", multipliers=[{"when": {"real_person": True}, "factor": "2"}])
    with pytest.raises(DocumentError, match="no such field"):
        parse_price(document, "image")


@pytest.mark.parametrize(
    ("numerator", "denominator", "nearest"), [(1, 2, 1), (49, 100, 0), (3, 2, 2), (10, 3, 3), (0, 7, 0)]
)
def test_a_half_is_rounded_up(numerator: int, denominator: int, nearest: int) -> None:
    assert half_up(numerator, denominator) == nearest


def test_money_is_written_with_two_to_six_places() -> None:
    written_amounts = [written(micros) for micros in (6_000_000, 199_999_998, 1, 2_500_000, -40_000)]
    assert written_amounts == ["6.00", "199.999998", "0.000001", "2.50", "-0.04"]


def test_an_amount_finer_than_a_micro_is_not_rounded_silently() -> None:
    assert micros_of("200.00") == 200_000_000
    with pytest.raises(MoneyError):
        micros_of("0.0000001")
