"""Renders `messages` with the chat templates that TRL ships, and lets its SFTTrainer prepare them for training."""

import json
import sys
import tempfile
from pathlib import Path

import datasets
import tiny
import trl
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl.data_utils import apply_chat_template

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
# Templates of models that call tools, where every word and every argument must arrive.
RENDERED = [
    *("qwen2_5_training", "qwen3", "qwen3_training", "qwen3_8", "glm4moe", "gemma4_v5", "nemotron_3_super", "lfm2_v2"),
    "deepseekv3_training",
]
REFUSE_LATE_SYSTEM = ["qwen3_8"]
rows = datasets.load_dataset(sys.argv[1], split="train")


def words(row):
    """Texts that must be found in the rendered conversation."""
    for message in row["messages"]:
        yield message["content"].strip()
        for call in message.get("tool_calls", ()):
            yield call["function"]["name"]
            yield from (text.strip() for text in call["function"]["arguments"].values() if isinstance(text, str))


def arrives(word, text):
    return word in text or json.dumps(word, ensure_ascii=False)[1:-1] in text or json.dumps(word)[1:-1] in text


def has_late_system(row):
    return any(message["role"] == "system" for message in row["messages"][1:])


def render(name):
    tokenizer = tiny.tokenizer((TEMPLATES / f"{name}.jinja").read_text())
    taken = [row for row in rows if not (name in REFUSE_LATE_SYSTEM and has_late_system(row))]
    for row in taken:
        tools = json.loads(row["tools"])
        text = apply_chat_template({"messages": row["messages"]}, tokenizer, tools=tools)["text"]
        missing = [word for word in words(row) if not arrives(word, text)]
        assert not missing, (name, row["prompt_index"], missing, text)
    return len(taken)


def train():
    """SFTTrainer's own preparation, with the loss on assistant turns only."""
    config = Qwen2Config(
        vocab_size=512, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=65536,
    )  # fmt: skip
    tokenizer = tiny.tokenizer((TEMPLATES / "qwen3_training.jinja").read_text())
    with tempfile.TemporaryDirectory() as folder:
        options = trl.SFTConfig(
            output_dir=folder, max_length=None, assistant_only_loss=True, use_cpu=True, bf16=False, report_to=[]
        )
        trainer = trl.SFTTrainer(
            model=Qwen2ForCausalLM(config), args=options, train_dataset=rows, processing_class=tokenizer
        )
        prepared = trainer.train_dataset
    assert len(prepared) == len(rows)
    for row, ready in zip(rows, prepared, strict=True):
        labelled = zip(ready["input_ids"], ready["labels"], strict=True)
        learned = tokenizer.decode([token for token, label in labelled if label != -100])
        said = [m["content"].strip() for m in row["messages"] if m["role"] == "assistant"]
        assert all(text in learned for text in said), (row["prompt_index"], said, learned)
    return len(prepared)


counts = {f"trl {trl.__version__} template {name}": render(name) for name in RENDERED}
counts[f"trl {trl.__version__} SFTTrainer"] = train()
print(json.dumps(counts))
