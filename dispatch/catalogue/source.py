"""YAML text as plain values, each with the line it stands on; pure.

Stricter than YAML: a key twice is an error, keys are texts, and only `true`, `false`, `null` and
numbers are anything but text, so that `no`, `12:30` or a date mean what they say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from catalog.texts import UNSTORABLE, is_storable

_MOST_VALUES = 200_000  # aliases can make a small file endless
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})")  # longer ones are texts: Python reads no endless ones
_DECIMAL = re.compile(r"[-+]?[0-9]+\.[0-9]+([eE][-+][0-9]+)?")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong: its line, its path (such as `channels.ark.concurrency`), and what to do."""

    line: int
    path: str
    message: str


class InvalidCatalogue(Exception):
    """The document cannot be used; `problems` says why, in the order of its lines."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__(
            "; ".join(f"line {each.line}: {each.path}: {each.message}" for each in self.problems)
        )


@dataclass(frozen=True, slots=True)
class Source:
    """`value` is what the text says; `lines` where each path begins, from 1."""

    value: Any
    lines: Mapping[str, int]

    def problem(self, path: str, message: str) -> Problem:
        return Problem(self.line(path), path, message)

    def line(self, path: str) -> int:
        """The line of the path, or of the nearest thing around it that the text holds."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 1)


def inside(path: str, key: str | int) -> str:
    """The path of `key` inside `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def read_source(text: str) -> Source:
    """Raises InvalidCatalogue where the text is not YAML of this kind."""
    reading = _Reading()
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        value = reading.value(root, "") if root else None
    except yaml.YAMLError as error:
        raise InvalidCatalogue([_syntax_problem(error)]) from error
    except RecursionError as error:
        raise InvalidCatalogue([Problem(1, "document", "is nested too deep")]) from error
    if reading.problems:
        raise InvalidCatalogue(reading.problems)
    return Source(value, reading.lines)


def _syntax_problem(error: yaml.YAMLError) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return Problem(error.problem_mark.line + 1, "document", f"is not YAML: {error.problem}")
    return Problem(1, "document", f"is not YAML: {error}")


@dataclass
class _Reading:
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    inside_of: set[int] = field(default_factory=set)  # nodes being read: an alias to one never ends
    values: int = 0

    def value(self, node: yaml.Node, path: str) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.values += 1
        if id(node) in self.inside_of or self.values > _MOST_VALUES:
            self.problems.append(Problem(self.lines[path], path, "is an alias without an end"))
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self.inside_of.add(id(node))
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self.inside_of.discard(id(node))
        return value

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        text = self._storable(str(node.value), node, path)
        if node.style is not None:  # quoted, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _WHOLE.fullmatch(text):
            return int(text)
        return float(text) if _DECIMAL.fullmatch(text) else text

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in node.value:
            name = self._storable(str(key.value), key, path) if isinstance(key, yaml.ScalarNode) else "?"
            at, line = inside(path, name), key.start_mark.line + 1
            if name in values:
                self.problems.append(Problem(line, at, f"is there already, on line {self.lines[at]}"))
                continue
            self.lines[at] = line
            values[name] = self.value(value, at)
        return values

    def _storable(self, text: str, node: yaml.Node, path: str) -> str:
        if is_storable(text):
            return text
        self.problems.append(Problem(node.start_mark.line + 1, path, UNSTORABLE))
        return ""

    def _list(self, node: yaml.Node, path: str) -> list[Any]:
        return [self.value(item, inside(path, index)) for index, item in enumerate(node.value)]
