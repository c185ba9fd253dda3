"""A declared transformation of a request from one profile to a lesser one: it drops whole lists, no more."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from catalog.document import DocumentError, Section, items
from catalog.shape import ImageShape, Shape, VideoShape

# The lists that may be dropped, and the count that says how many a request's shape has of each.
DROPPABLE: Final[Mapping[str, str]] = {
    "reference_images": "images",
    "reference_videos": "videos",
    "reference_audios": "audios",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """`drop_inputs` are names of the request's lists, in declared order."""

    from_profile: str
    to_profile: str
    drop_inputs: tuple[str, ...]
    verified: bool
    published: bool

    @property
    def usable(self) -> bool:
        return self.verified and self.published


def parse_rule(document: Any, path: str = "rule") -> Rule:
    """Raises DocumentError, naming the path."""
    section = Section(document, path, ("from_profile", "to_profile", "drop_inputs", "verified", "published"))
    return Rule(
        from_profile=section.text("from_profile"),
        to_profile=section.text("to_profile"),
        drop_inputs=tuple(
            _droppable(name, at) for name, at in items(section.raw("drop_inputs"), section.at("drop_inputs"))
        ),
        verified=section.flag("verified"),
        published=section.flag("published"),
    )


def _droppable(name: Any, path: str) -> str:
    if name not in DROPPABLE:
        raise DocumentError(path, f"{name!r} can't be dropped; it must be one of {', '.join(DROPPABLE)}")
    return str(name)


def rule_document(rule: Rule) -> dict[str, Any]:
    """What parse_rule reads back as the same rule."""
    return {
        "from_profile": rule.from_profile,
        "to_profile": rule.to_profile,
        "drop_inputs": list(rule.drop_inputs),
        "verified": rule.verified,
        "published": rule.published,
    }


def reduced(shape: Shape, rule: Rule) -> Shape:
    """The shape of the request that `rule` makes of one with this shape."""
    if isinstance(shape, ImageShape):
        return replace(shape, images=0) if "reference_images" in rule.drop_inputs else shape
    return _reduced_video(shape, rule)


def _reduced_video(shape: VideoShape, rule: Rule) -> VideoShape:
    dropped: dict[str, Any] = {DROPPABLE[name]: 0 for name in rule.drop_inputs}
    return replace(shape, **dropped) if dropped else shape


def transformed(request: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    """The normalized request as `rule` leaves it: the named lists empty, all else untouched and in order."""
    return {key: [] if key in rule.drop_inputs else value for key, value in request.items()}
