"""The form of customers' requests; every limit is checked here, before anything else is done."""

import json
from decimal import Decimal
from typing import Any

from django.conf import settings
from rest_framework import serializers

from billing.money import MoneyError, micros_of
from catalog.shape import IMAGE_MODES, VIDEO_MODES
from dispatch.models import ServiceClass
from dispatch.outputs.addresses import Refusal, judge_target, read_url

PROMPT_MAX = 20_000  # characters
REFERENCES_MAX = 20
METADATA_MAX_BYTES = 4_096
URL_MAX = 2_048
ASSET_PREFIX = "ast_"
PORTS = frozenset({443})


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know: nothing that a customer says is silently ignored."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict):
            for name in data:
                if name not in self.fields:
                    raise serializers.ValidationError({str(name)[:60]: "There is no such field."})
        return super().to_internal_value(data)  # type: ignore[no-any-return]


class ReferenceField(serializers.CharField):
    """The id of an uploaded file, or an https address of an image, a video or a sound.

    The guard of addresses looks at what is written, before anything is done with it; what a name resolves
    to is judged by whoever connects."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=URL_MAX, **options)

    def to_internal_value(self, data: Any) -> dict[str, str]:  # type: ignore[override]
        said = super().to_internal_value(data)
        if said.startswith(ASSET_PREFIX):
            return {"asset": said}
        if not said.startswith("https://"):
            raise serializers.ValidationError(
                "Give the id of an asset, or an address that begins with https://."
            )
        refusal = _refusal_of(said)
        if refusal is not None:
            raise serializers.ValidationError(f"This address can't be used: {refusal}.")
        return {"url": said}

    def to_representation(self, value: Any) -> str:
        return str(value.get("asset") or value["url"])


def _refusal_of(url: str) -> Refusal | None:
    target = read_url(url)
    if isinstance(target, Refusal):
        return target
    return judge_target(target, PORTS, private_allowed=settings.ALLOW_PRIVATE_ADDRESSES)


class ReferenceListField(serializers.ListField):
    child = ReferenceField()

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=REFERENCES_MAX, required=False, **options)


class RequestSerializer(StrictSerializer):
    """What requests for videos and for images have in common."""

    model = serializers.CharField(max_length=80, required=False)
    prompt = serializers.CharField(max_length=PROMPT_MAX, trim_whitespace=False)
    negative_prompt = serializers.CharField(max_length=PROMPT_MAX, required=False, trim_whitespace=False)
    seed = serializers.IntegerField(min_value=0, max_value=2**32 - 1, required=False)
    size = serializers.CharField(max_length=20, required=False)
    n = serializers.IntegerField(min_value=1, max_value=10, required=False)
    reference_images = ReferenceListField()
    degradation = serializers.ChoiceField(choices=["strict", "best_effort"], required=False)
    routing_mode = serializers.ChoiceField(choices=["preferred", "strict_model", "auto"], required=False)
    max_cost = serializers.DecimalField(max_digits=18, decimal_places=6, min_value=Decimal(0), required=False)
    project = serializers.CharField(max_length=80, required=False)
    end_user = serializers.CharField(max_length=80, required=False)
    metadata = serializers.DictField(
        child=serializers.CharField(max_length=500, allow_blank=True), required=False
    )

    def validate_metadata(self, value: dict[str, str]) -> dict[str, str]:
        if len(json.dumps(value).encode()) > METADATA_MAX_BYTES:
            raise serializers.ValidationError(f"Metadata takes at most {METADATA_MAX_BYTES} bytes.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Money leaves the door as integer micros."""
        if "max_cost" in attrs:
            try:
                attrs["max_cost_micros"] = micros_of(attrs.pop("max_cost"))
            except MoneyError as error:
                raise serializers.ValidationError({"max_cost": str(error)}) from error
        return attrs


class JobRequestSerializer(RequestSerializer):
    """The body of `POST /api/v1/jobs/`, for both modalities; the model's own limits come after."""

    mode = serializers.ChoiceField(choices=[*VIDEO_MODES, *IMAGE_MODES], required=False)
    duration_s = serializers.IntegerField(min_value=1, max_value=600, required=False)
    resolution = serializers.CharField(max_length=20, required=False)
    aspect_ratio = serializers.CharField(max_length=10, required=False)
    fps = serializers.IntegerField(min_value=1, max_value=240, required=False)
    audio = serializers.BooleanField(required=False)
    sample_count = serializers.IntegerField(min_value=1, max_value=10, required=False)
    reference_videos = ReferenceListField()
    reference_audios = ReferenceListField()
    first_frame = ReferenceField(required=False)
    last_frame = ReferenceField(required=False)
    real_person = serializers.BooleanField(required=False)
    billing_mode = serializers.ChoiceField(choices=["per_second", "per_request"], required=False)
    service_class = serializers.ChoiceField(choices=ServiceClass.values, required=False)
    max_queue_s = serializers.IntegerField(min_value=1, max_value=86_400, required=False)
    regions = serializers.ListField(
        child=serializers.CharField(max_length=40), min_length=1, max_length=20, required=False
    )


class ImageRequestSerializer(RequestSerializer):
    """The body of `POST /api/v1/images/`."""

    mode = serializers.ChoiceField(choices=IMAGE_MODES, required=False)
