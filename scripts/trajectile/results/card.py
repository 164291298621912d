"""The dataset card: features spelled out, so that `datasets` loads the run folder at any size and in any order."""

from typing import Any

import msgspec
import yaml
from msgspec import inspect

from trajectile.results.shape import Statistics
from trajectile.rows import Trajectory

DTYPES: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "int64",
    inspect.FloatType: "float64",
    inspect.BoolType: "bool",
}

TEXT = """
# {run_name}

Agent trajectories made with Trajectile from {prompts} prompts.

| | |
| --- | --- |
| model | `{model}` |
| toolset distribution | `{distribution}` |
| finished | {finished} of {prompts} prompts |
| taken out by the quality filter | {discarded} |

Each row is one prompt, in the order of the prompts. Rows whose prompt has left the dataset, where they are kept, come
last, with -1 as `prompt_index`. `conversations` is a list of turns, every turn with every key;
`tool_calls[].arguments` and `source` are JSON text.

```python
from datasets import load_dataset

rows = load_dataset("path/to/this/folder", split="train")
```
"""


def card(statistics: Statistics, tools: list[str]) -> str:
    """Return the text of README.md; `tools` are the tool names that each row of trajectories.jsonl has."""
    head = {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "trajectories.jsonl"}]}],
        "dataset_info": {"config_name": "default", "features": features(tools)},
    }
    text = TEXT.format(
        run_name=statistics.run_name,
        model=statistics.model,
        distribution=statistics.distribution,
        prompts=statistics.total_prompts,
        finished=statistics.finished,
        discarded=statistics.discarded.total,
    )
    return f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n{text}"


def features(tools: list[str]) -> list[dict[str, Any]]:
    """Return the features of a trajectory row as a card writes them."""
    return _fields(inspect.type_info(Trajectory), tools)


def struct_features(struct: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Return the features of a row of another shape, one without mappings."""
    return _fields(inspect.type_info(struct), [])


def _fields(struct: inspect.Type, tools: list[str]) -> list[dict[str, Any]]:
    assert isinstance(struct, inspect.StructType)
    return [{"name": field.encode_name, **_feature(field.type, tools)} for field in struct.fields]


def _feature(kind: inspect.Type, tools: list[str]) -> dict[str, Any]:
    match kind:
        case inspect.StructType():
            return {"struct": _fields(kind, tools)}
        case inspect.DictType(value_type=value):
            return {"struct": [{"name": tool, **_feature(value, tools)} for tool in tools]}
        case inspect.ListType(item_type=inspect.StructType() as item):
            return {"list": _fields(item, tools)}
        case inspect.ListType(item_type=item):
            return {"sequence": DTYPES[type(item)]}
    return {"dtype": DTYPES[type(kind)]}
