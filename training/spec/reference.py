"""The reference page of the pipeline file, rendered from its JSON schema: one table per block."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from training.spec.wording import list_words

Node = Mapping[str, Any]

_INTRODUCTION: Final = """\
# The pipeline file

Made from the models in `training/spec`; change it there and run `python -m training.spec.schema --write`.

Editors that know YAML schemas complete and check a file that begins with

```yaml
# yaml-language-server: $schema=../../docs/reference/pipeline.schema.json
```

Files are YAML 1.2: only `true` and `false` are truth values, `1e-3` is a number, dates are text. Tags, anchors, aliases
and keys that are given twice are refused. Any value can be replaced on the command line: `--set train.epochs=3`.
"""
_SCALARS: Final = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("maxLength", "at most {} characters"),
)


def render_reference(schema: Node) -> str:
    """Return the reference page in Markdown.

    Args:
        schema: What `training.spec.schema.pipeline_schema` returns.
    """
    return _Reference(schema["$defs"]).render(schema)


class _Reference:
    def __init__(self, definitions: Mapping[str, Node]) -> None:
        self._definitions = definitions

    def render(self, root: Node) -> str:
        sections = [_INTRODUCTION, "## The top level\n", self._table(root)]
        for key, node in root["properties"].items():
            sections += self._sections(key, node)
        return "\n".join(sections)

    def _sections(self, path: str, node: Node) -> Iterator[str]:
        """Yield the headings and tables of the blocks that the value at `path` may be, and of those inside them."""
        suffix, blocks = self._find_blocks(node)
        if len(blocks) > 1:
            yield from self._variants(path, blocks)
        for block in blocks[:1] if len(blocks) == 1 else ():
            yield f"## `{path}{suffix}`\n\n{block['description']}\n"
            yield self._table(block)
        for block in blocks[:1]:
            for key, inner in block["properties"].items():
                yield from self._sections(f"{path}{suffix}.{key}", inner)

    def _variants(self, path: str, blocks: Sequence[Node]) -> Iterator[str]:
        """Yield one table of what the variants share, and one for each variant."""
        first = blocks[0]["properties"]
        shared = [key for key in first if all(block["properties"].get(key) == first[key] for block in blocks)]
        yield f"## `{path}`\n\nThese keys are the same for every engine:\n"
        yield self._table(blocks[0], shared)
        for block in blocks:
            tag, value = next((key, node["const"]) for key, node in block["properties"].items() if "const" in node)
            yield f"### `{path}` with `{tag}: {value}`\n\n{block['description']}\n"
            yield self._table(block, [key for key in block["properties"] if key not in shared])

    def _find_blocks(self, node: Node) -> tuple[str, list[Node]]:
        """Return the blocks that a value may be, and `.<name>` when it is a mapping from names to such blocks."""
        if isinstance(node.get("additionalProperties"), dict):
            return ".<name>", self._find_blocks(node["additionalProperties"])[1]
        if node.get("type") == "array":
            return "[]", self._find_blocks(node["items"])[1]
        if "$ref" in node:
            return "", [self._definitions[node["$ref"].rpartition("/")[2]]]
        members = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        return "", [block for member in members for block in self._find_blocks(member)[1]]

    def _describe(self, node: Node) -> str:
        """Return a key's meaning; pydantic leaves it out where the block below has the same."""
        text: str = node["description"] if "description" in node else self._find_blocks(node)[1][0]["description"]
        return text

    def _table(self, block: Node, keys: Sequence[str] | None = None) -> str:
        required = block.get("required", ())
        rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key in block["properties"] if keys is None else keys:
            node = block["properties"][key]
            cells = (f"`{key}`", _name_type(node), _name_default(node, key in required), self._describe(node))
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        return "\n".join(rows) + "\n"


def _name_type(node: Node) -> str:
    """Return the type of a value in words.

    >>> _name_type({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'whole number, at least 1; or null'
    """
    members = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if members:
        names = list(dict.fromkeys(_name_type(member) for member in members))
        separator = "; or " if any("," in name for name in names) else " or "
        return separator.join(names)
    if "const" in node or "enum" in node:
        return list_words(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    if "$ref" in node:
        return "block"
    kind = node.get("type")
    if kind == "array":
        items = _name_type(node["items"])
        return "list of blocks" if items == "block" else f"list of {items}"
    if kind == "object":
        values = node.get("additionalProperties")
        return f"block of names to {_name_type(values)}" if isinstance(values, dict) else "block of any keys"
    if kind == "null":
        return "null"
    limits = [words.format(node[key]) for key, words in _LIMITS if key in node]
    return ", ".join([_SCALARS[str(kind)], *limits])


def _name_default(node: Node, required: bool) -> str:
    if required:
        return "required"
    default = node.get("default")
    if default in ({}, []) or "$ref" in node:
        return "empty" if "$ref" not in node else "its defaults"
    return f"`{json.dumps(default)}`" if not isinstance(default, str) or not default else f"`{default}`"
