"""What snapshots and documents record, in the reader's words."""

from typing import Any

import pytest
from django.utils import translation

from dispatch.models import SelectionRound
from dispatch.views.explanation import explained
from dispatch.views.field_words import field_said, reason_said, setting_said, value_said
from dispatch.views.snapshot_words import details_said
from tests.rules.scenarios import exact, fallback, scenario, supply
from tests.snapshots import snapshot_of

FULL = {"a": supply(used=5), "b": supply()}
BOUND = [*exact("a"), *fallback("b")]


def told_of(supplies: dict[str, Any], policy: dict[str, Any] | None = None) -> Any:
    recorded = snapshot_of(scenario(supplies, BOUND, policy=policy))
    return explained(SelectionRound(snapshot=recorded), [])


def sentence_of(told: Any, supply: str) -> str:
    return next(row.sentence for row in told.rows if row.supply == supply)


def test_a_tier_that_was_not_opened_says_that_the_one_above_is_only_full_and_what_would_open_it() -> None:
    told = told_of(FULL)
    assert told.not_reached == 1
    said = sentence_of(told, "b")
    assert "“exact” still counts as available" in said
    assert "“When exact supplies are full, use fallback ones” would open this one" in said
    assert "layer" not in said
    with translation.override("zh-hans"):
        assert "精确" in sentence_of(told_of(FULL), "b")


def test_a_tier_below_the_one_that_took_the_job_says_so_and_names_no_setting() -> None:
    said = sentence_of(told_of({"a": supply(), "b": supply()}), "b")
    assert said == "A supply of the tier “exact” took the job: this one was not looked at."


@pytest.mark.parametrize(
    ("recorded", "chinese"),
    [
        ("channel ark-beijing: 3 of at most 2", "渠道 ark-beijing：3 个，上限 2 个"),
        ("the supply, channel ark-beijing", "该供给、渠道 ark-beijing"),
        ("the supply, something else", ""),
        ("duration_s 10 (can 4 to 6)", "时长（秒）：10（仅支持：4 至 6）"),
        (
            "mode extend (can image_to_video, text_to_video); images 5 (at most 4)",
            "模式：延长视频（仅支持：图生视频、文生视频）、参考图像：5（最多 4）",
        ),
        ("audio true (can false with resolution 1080p)", "声音：是（分辨率 1080p 时仅支持：否）"),
        ("duration_s 8 (can … to 6 with fps 60)", "时长（秒）：8（帧率 60 时仅支持：不超过 6）"),
        ("fps 60 (can nothing); seed", "帧率：60（仅支持：无）、种子：不支持"),
        ("asked per_request, charged per_second", "请求：按结果；计费：按秒"),
        ("tier fallback", "备选"),
        ("does not guarantee iso27001", "不保证 iso27001"),
        ("0.9 over 0.5", "0.9，高于 0.5"),
        ("reference.mp4 has 70 frames", ""),
    ],
)
def test_recorded_details_are_said_in_chinese_where_their_words_are_known(
    recorded: str, chinese: str
) -> None:
    with translation.override("zh-hans"):
        assert details_said(recorded) == chinese


def test_values_of_documents_and_reasons_of_maintenances_are_said_in_words() -> None:
    assert value_said({"seed": True, "negative_prompt": False}) == "Seed: yes, Negative prompt: no"
    assert value_said(["text_to_video", {"min": 4, "max": 15}]) == 'text to video, {"min": 4, "max": 15}'
    with translation.override("zh-hans"):
        assert field_said("negative_prompt") == "负面提示词"
        assert reason_said("end of maintenance") == "维护结束"
        assert reason_said("maintenance: new keys") == "维护：new keys"
    assert (field_said("x_y"), reason_said("wrong colours")) == ("x_y", "wrong colours")


def test_what_a_request_asked_for_is_said_by_its_setting() -> None:
    assert setting_said("per_second", "billing_mode") == "by the second"
    assert setting_said("best_effort", "degradation") == "deliver degraded, and say so"
    assert (setting_said("no", "audio"), setting_said("720p", "resolution")) == ("no", "720p")
    with translation.override("zh-hans"):
        assert setting_said("strict_model", "routing_mode") == "仅所指定的模型，不用替代"
