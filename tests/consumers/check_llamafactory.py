"""Converts the rows with LLaMA-Factory's loader, then encodes them with its supervised processor."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import tiny
from llamafactory.data.loader import _load_single_dataset
from llamafactory.data.parser import get_dataset_list
from llamafactory.data.processor.supervised import SupervisedDatasetProcessor
from llamafactory.data.template import TEMPLATES
from llamafactory.hparams import DataArguments, ModelArguments
from transformers import TrainingArguments

folder = Path(sys.argv[1])
arguments = DataArguments(dataset_dir=str(folder), cutoff_len=1 << 20, overwrite_cache=True)
training = TrainingArguments(output_dir=str(folder / "unused"), use_cpu=True)


def load(name):
    [entry] = get_dataset_list([name], str(folder))
    return _load_single_dataset(entry, ModelArguments(model_name_or_path="none"), arguments, training)


def check_words(rows, name, file):
    """Every turn of the file is in the converted row."""
    lines = [json.loads(line) for line in (folder / file).read_bytes().splitlines()]
    for row, line in zip(rows, lines, strict=True):
        turns = row["_prompt"] + row["_response"]
        assert [turn["content"] for turn in turns] == [turn["value"] for turn in line["conversations"]], name
        assert row["_system"] == line["system"] and row["_tools"] == line["tools"]


def encode(rows, template):
    processor = SupervisedDatasetProcessor(
        template=TEMPLATES[template], tokenizer=tiny.tokenizer(), processor=None, data_args=arguments
    )
    ready = processor.preprocess_dataset(rows[:])
    texts = [processor.tokenizer.decode(ids) for ids in ready["input_ids"]]
    for row, text in zip(rows, texts, strict=True):
        for turn in row["_prompt"] + row["_response"]:
            if turn["role"] == "function":
                calls = json.loads(turn["content"].split("</think>\n\n")[-1])
                assert all(json.dumps(call["arguments"], ensure_ascii=False) in text for call in calls), text
            else:
                assert turn["content"] in text, (turn, text)
    return len(texts)


found = {}
for name, entry in json.loads((folder / "dataset_info.json").read_bytes()).items():
    rows = load(name)
    check_words(rows, name, entry["file_name"])
    for template in ("qwen3", "hermes" if "hermes" in TEMPLATES else "qwen"):
        found[f"{name} template {template}"] = encode(rows, template)
splits = json.loads((folder / "summary.json").read_bytes())["splits"]
assert sorted(found.values()) == sorted([*splits.values()] * 2), (found, splits)
print(json.dumps({f"llamafactory {version('llamafactory')} {name}": rows for name, rows in found.items()}))
