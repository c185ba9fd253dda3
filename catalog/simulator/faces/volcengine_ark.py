"""Ark as its official SDK knows it: tasks that make videos, and pictures at once.

`safety_identifier` is our reference; for pictures, which take none, the header `X-Client-Request-Id`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any, Final

from catalog.simulator import media
from catalog.simulator.faces.face import Request, json_answer
from catalog.simulator.outputs import output_address
from catalog.simulator.scenario import Call, Do
from catalog.simulator.wire import Answer
from catalog.simulator.world import Task, World

_TASKS, _IMAGES = "/contents/generations/tasks", "/images/generations"
_KEPT_S = 7 * 24 * 3600
_FRAMES_PER_SECOND = 24
_MOST_PAGE_ROWS = 500
_SQUARES = {"1K": (1024, 1024), "2K": (2048, 2048), "3K": (3072, 3072), "4K": (4096, 4096)}
_CREATED_NOTHING = ("drop_before_response", "reset_before_response", "redirect")


@dataclass(frozen=True, slots=True)
class ArkError:
    status: int
    code: str
    message: str
    type: str


def _errors(*rows: tuple[int, str, str, str]) -> dict[str, ArkError]:
    return {code: ArkError(status, code, message, kind) for status, kind, code, message in rows}


# By their codes; a script may name any of them, or any other code, which no adapter knows then.
ERRORS: Final = _errors(
    (400, "BadRequest", "MissingParameter", "One or more required parameters are missing."),
    (400, "BadRequest", "InvalidParameter", "A parameter specified in the request is not valid."),
    (400, "BadRequest", "InvalidEndpoint.ClosedEndpoint", "The endpoint is closed or unavailable."),
    (400, "BadRequest", "SensitiveContentDetected", "The input text may be sensitive."),
    (400, "BadRequest", "InputTextSensitiveContentDetected", "The input text may be sensitive."),
    (400, "BadRequest", "InputImageSensitiveContentDetected", "The input image may be sensitive."),
    (400, "BadRequest", "InputImageSensitiveContentDetected.PrivacyInformation", "May show a real person."),
    (400, "BadRequest", "OutputVideoSensitiveContentDetected", "The output video may be sensitive."),
    (400, "BadRequest", "OutputImageSensitiveContentDetected", "The output image may be sensitive."),
    (401, "Unauthorized", "AuthenticationError", "The API key is missing or invalid."),
    (403, "Forbidden", "AccountOverdueError", "The account has an overdue balance."),
    (403, "Forbidden", "AccessDenied", "Access to this resource is denied."),
    (404, "NotFound", "InvalidEndpointOrModel.NotFound", "The model or endpoint does not exist."),
    (404, "NotFound", "ModelNotOpen", "The account has not activated the model."),
    (404, "NotFound", "ResourceNotFound", "The task is not found."),
    (409, "Conflict", "InvalidAction", "The task is running and can't be deleted."),
    (429, "TooManyRequests", "RateLimitExceeded.EndpointRPMExceeded", "Requests per minute exceeded."),
    (429, "TooManyRequests", "RateLimitExceeded.EndpointTPMExceeded", "Tokens per minute exceeded."),
    (429, "TooManyRequests", "ModelAccountRpmRateLimitExceeded", "Requests per minute exceeded."),
    (429, "TooManyRequests", "ModelAccountTpmRateLimitExceeded", "Tokens per minute exceeded."),
    (429, "TooManyRequests", "QuotaExceeded", "The quota is used up."),
    (429, "TooManyRequests", "ModelLoadingError", "The model is being loaded."),
    (429, "TooManyRequests", "ServerOverloaded", "The service is overloaded."),
    (500, "InternalServerError", "InternalServiceError", "The service encountered an internal error."),
)  # fmt: skip


class ArkFace:
    """Under `/ark/api/v3`, so that an SDK works with that as its base address."""

    name: Final = "ark"
    prefix: Final = "/ark/api/v3"

    def answer(self, request: Request, world: World) -> Answer:
        answer = _answer(request, world)
        return replace(answer, headers={"Date": formatdate(world.now(), usegmt=True), **answer.headers})

    def callback(self, task: Task, word: str, at: float, origin: str) -> bytes:
        return json.dumps(_document(task, word, at, origin)).encode()

    def output(self, task: Task) -> tuple[str, bytes]:
        if task.id.startswith("img-"):
            return "image/jpeg", media.picture(*(_picture_size(task.request) or (1024, 1024)))
        width, height = _video_size(task.request)
        return "video/mp4", media.video(_duration(task.request), width, height, bool(_audio(task.request)))


def _answer(request: Request, world: World) -> Answer:
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if kind.casefold() != "bearer" or not key or world.account(key).state == "revoked":
        return _error("AuthenticationError")
    method, path = request.method, request.path
    if method == "POST" and path in (_TASKS, _IMAGES):
        return _submit(request, key, world)
    if method == "GET" and path == _TASKS:
        return _list(request, key, world)
    if method in ("GET", "DELETE") and path.startswith(_TASKS + "/"):
        return _one(request, key, path.removeprefix(_TASKS + "/"), world)
    return Answer(404, b"404 page not found", {"Content-Type": "text/plain"})


def _submit(request: Request, key: str, world: World) -> Answer:
    body = _object(request.body)
    is_video = request.path == _TASKS
    model = body.get("model") if isinstance(body.get("model"), str) else ""
    reference = body.get("safety_identifier") or request.headers.get("x-client-request-id", "")
    call = Call("submit", key, str(model), str(reference))
    refusal = _own_refusal(body, is_video, key, world)
    if refusal is not None:
        world.refuse(call, refusal.code)
        return _answer_of(refusal)
    do = world.decide(call)
    if do.error or do.answer in _CREATED_NOTHING:
        world.refuse(call, do.error or do.answer)
        return _spoilt(_error(do.error, do) if do.error else _redirected(do), do)
    task = world.accept(ArkFace.name, "cgt-" if is_video else "img-", call, body, do)
    if do.callback == "early" and is_video:
        world.await_call(task)
    if do.error_after_acceptance:
        return _spoilt(_error(do.error_after_acceptance, do), do)
    if not is_video:
        return _spoilt(json_answer(200, _pictures(task, world, request.origin)), do)
    return _spoilt(json_answer(200, _told_id(task)), do)


def _own_refusal(body: Mapping[str, Any], is_video: bool, key: str, world: World) -> ArkError | None:
    """What Ark itself refuses, before any script is asked."""
    if world.account(key).state == "overdue":
        return ERRORS["AccountOverdueError"]
    if world.is_at_limit(key):
        return ERRORS["ModelAccountRpmRateLimitExceeded"]
    problem = _video_problem(body) if is_video else _picture_problem(body)
    if problem is None:
        return None
    code = "MissingParameter" if problem.startswith("missing") else "InvalidParameter"
    return replace(ERRORS[code], message=f"{ERRORS[code].message} {problem}")


def _told_id(task: Task) -> dict[str, Any]:
    match task.do.answer:
        case "missing_id":
            return {"request": "accepted"}
        case "wrong_type_id":
            return {"id": 20261130}
        case "repeated_id":
            return {"id": task.before}
        case _:
            return {"id": task.id}


def _spoilt(answer: Answer, do: Do) -> Answer:
    return replace(answer, delivery=do.answer, latency_s=do.latency_s)


def _redirected(do: Do) -> Answer:
    return Answer(do.status or 307, b"", {"Location": do.location})


def _error(code: str, do: Do | None = None) -> Answer:
    """A code that Ark does not have is answered all the same, as a new one would be."""
    error = ERRORS.get(code) or ArkError(400, code, "Something that no table holds.", "BadRequest")
    return _answer_of(replace(error, status=do.status) if do and do.status else error, do)


def _answer_of(error: ArkError, do: Do | None = None) -> Answer:
    headers = {"Retry-After": do.retry_after} if do and do.retry_after else {}
    said = {"code": error.code, "message": error.message, "param": "", "type": error.type}
    return json_answer(error.status, {"error": said}, headers=headers)


def _object(body: bytes) -> dict[str, Any]:
    """Without its nulls: the SDK writes every parameter that was not given."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return (
        {key: value for key, value in document.items() if value is not None}
        if isinstance(document, dict)
        else {}
    )


def _video_problem(body: Mapping[str, Any]) -> str | None:
    content = body.get("content")
    if not body.get("model") or not isinstance(content, list) or not content:
        return "missing: model or content"
    roles = [part.get("role") or part.get("type") for part in content if isinstance(part, dict)]
    if len(roles) != len(content) or any(part.get("type") not in part for part in content):
        return "content: a part that is not text, image, video, audio or draft"
    frames = {role for role in roles if role in ("first_frame", "last_frame")}
    if frames and any(str(role).startswith("reference_") for role in roles):
        return "content: frames and references exclude each other"
    if "last_frame" in frames and "first_frame" not in frames:
        return "content: last_frame without first_frame"
    if set(roles) <= {"text", "reference_audio"} and "reference_audio" in roles:
        return "content: audio never alone"
    return _parameter_problem(body)


def _parameter_problem(body: Mapping[str, Any]) -> str | None:
    if body.get("resolution", "720p") not in ("480p", "720p", "1080p"):
        return "resolution"
    if body.get("ratio", "adaptive") not in ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"):
        return "ratio"
    duration = body.get("duration", 5)
    if not isinstance(duration, int) or not (duration == -1 or 1 <= duration <= 60):
        return "duration"
    return None


def _picture_problem(body: Mapping[str, Any]) -> str | None:
    if not body.get("model") or not body.get("prompt"):
        return "missing: model or prompt"
    return None if _picture_size(body) else "size"


def _one(request: Request, key: str, task_id: str, world: World) -> Answer:
    task = world.task(task_id, key)
    verb = "status" if request.method == "GET" else "cancel"
    do = world.decide(Call(verb, key, task.model if task else "", task.reference if task else ""))
    if do.error:
        return _spoilt(_error(do.error, do), do)
    if do.answer == "redirect":
        return _redirected(do)
    if task is None or task.life.created_at < world.now() - _KEPT_S:
        return _error("ResourceNotFound")
    if verb == "cancel":
        return _spoilt(_cancel(task, world), do)
    word = task.life.word(world.now())
    return _spoilt(json_answer(200, _document(task, word, world.now(), request.origin)), do)


def _cancel(task: Task, world: World) -> Answer:
    word = task.life.word(world.now())
    if word == "running":
        return _error("InvalidAction")
    if word == "queued":
        world.cancel(task)
    else:
        world.erase(task)  # deleting a task that has ended deletes its record
    return Answer(204)


def _list(request: Request, key: str, world: World) -> Answer:
    do = world.decide(Call("list", key))
    if do.error:
        return _spoilt(_error(do.error, do), do)
    wanted = request.parameters()
    now = world.now()
    tasks = [
        task
        for task in world.newest_first(ArkFace.name, key, now - _KEPT_S)
        if task.id.startswith("cgt-") and _is_wanted(task, task.life.word(now), wanted)
    ]
    rows = min(_number(wanted, "page_size", 10), _MOST_PAGE_ROWS)
    first = (_number(wanted, "page_num", 1) - 1) * rows
    items = [
        _document(task, task.life.word(now), now, request.origin) for task in tasks[first : first + rows]
    ]
    return _spoilt(json_answer(200, {"total": len(tasks), "items": items}), do)


def _is_wanted(task: Task, word: str, wanted: Mapping[str, list[str]]) -> bool:
    return (
        word in wanted.get("filter.status", [word])
        and task.id in wanted.get("filter.task_ids", [task.id])
        and task.model in wanted.get("filter.model", [task.model])
        and wanted.get("filter.service_tier", ["default"]) == ["default"]
    )


def _number(wanted: Mapping[str, list[str]], name: str, default: int) -> int:
    written = wanted.get(name, [""])[0]
    return max(1, int(written)) if written.isdecimal() else default


def _document(task: Task, word: str, now: float, origin: str) -> dict[str, Any]:
    request, life = task.request, task.life
    ended_at = life.cancelled_at or (life.end_at if now >= life.end_at else min(now, life.start_at))
    document: dict[str, Any] = {
        "id": task.id,
        "model": task.model,
        "status": word,
        "created_at": int(life.created_at),
        "updated_at": int(max(life.created_at, now if task.do.sequence else ended_at)),
        "seed": request.get("seed", task.number),
        "resolution": request.get("resolution", "720p"),
        "ratio": request.get("ratio", "16:9"),
        "duration": _duration(request),
        "framespersecond": _FRAMES_PER_SECOND,
        "service_tier": "default",
        "execution_expires_after": request.get("execution_expires_after", 172800),
        "generate_audio": _audio(request),
    }
    if request.get("safety_identifier") and not task.do.without_reference:
        document["safety_identifier"] = request["safety_identifier"]
    if word.strip().casefold().startswith("succe"):
        document |= _result(task, origin, now)
    if word == "failed":
        error = ERRORS.get(task.do.fail)
        message = error.message if error else "Something that no table holds."
        document["error"] = {"code": task.do.fail or "InternalServiceError", "message": message}
    return document


def _result(task: Task, origin: str, now: float) -> dict[str, Any]:
    width, height = _video_size(task.request)
    tokens = width * height * _FRAMES_PER_SECOND * _duration(task.request) // 1024
    counted = {"completion_tokens": tokens, "total_tokens": tokens}
    result: dict[str, Any] = {"usage": {**counted, **task.do.usage}}
    if not task.do.without_output:
        result["content"] = {"video_url": output_address(task, origin, now, "mp4")}
    elif task.do.fail:
        result["error"] = {"code": task.do.fail, "message": "The output was withheld."}
    return result


def _pictures(task: Task, world: World, origin: str) -> dict[str, Any]:
    width, height = _picture_size(task.request) or (0, 0)
    document: dict[str, Any] = {"model": task.model, "created": int(world.now())}
    if task.do.fail:
        error = ERRORS.get(task.do.fail)
        said = {"code": task.do.fail, "message": error.message if error else "Withheld."}
        return document | {"data": [], "error": said, "usage": {"generated_images": 0}}
    picture = {"url": output_address(task, origin, world.now(), "jpeg"), "size": f"{width}x{height}"}
    tokens = width * height // 256
    usage = {"generated_images": 1, "output_tokens": tokens, "total_tokens": tokens}
    return document | {"data": [] if task.do.without_output else [picture], "usage": usage}


def _duration(request: Mapping[str, Any]) -> int:
    duration = int(request.get("duration", 5))
    return 5 if duration < 1 else duration


def _audio(request: Mapping[str, Any]) -> bool:
    return bool(request.get("generate_audio", False))


def _video_size(request: Mapping[str, Any]) -> tuple[int, int]:
    return media.size_of(request.get("resolution", "720p"), request.get("ratio", "16:9"))


def _picture_size(request: Mapping[str, Any]) -> tuple[int, int] | None:
    size = str(request.get("size", "1K"))
    if size in _SQUARES:
        return _SQUARES[size]
    across, _, down = size.partition("x")
    if across.isdecimal() and down.isdecimal() and 16 <= int(across) <= 8192 and 16 <= int(down) <= 8192:
        return int(across), int(down)
    return None
