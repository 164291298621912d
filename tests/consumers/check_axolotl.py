"""Loads `messages` as axolotl.yaml says, and tokenizes each row with Axolotl's chat_template strategy."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import tiny
import yaml
from axolotl.prompt_strategies.chat_template import StrategyLoader
from axolotl.utils.data.shared import load_dataset_with_config
from axolotl.utils.dict import DictDefault

folder = Path(sys.argv[1])
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['reasoning_content'] %}<think>{{ message['reasoning_content'] }}</think>{% endif %}
{{- message['content'] }}
{%- for call in message['tool_calls'] or [] %}
<tool_call>{{ call.function.name }} {{ call.function.arguments | tojson }}</tool_call>{% endfor %}
{%- if message['tool_call_id'] %} for {{ message['tool_call_id'] }} {{ message['name'] }}{% endif %}<|im_end|>
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"""


def strategy_of(entry):
    config = DictDefault(
        sequence_len=1 << 20, train_on_inputs=False, chat_template="jinja", chat_template_jinja=TEMPLATE
    )
    return StrategyLoader()(tiny.tokenizer(TEMPLATE), config, DictDefault(entry))


def check(entry):
    entry = entry | {"path": str(folder)}
    rows = load_dataset_with_config(DictDefault(entry), use_auth_token=False)
    strategy = strategy_of(entry)
    for row in rows:
        ready = strategy.tokenize_prompt(row)
        learned = [token for token, label in zip(ready["input_ids"], ready["labels"], strict=True) if label != -100]
        text = strategy.tokenizer.decode(learned)
        for message in row["messages"]:
            made = message["role"] == "assistant" and message.get("train") is not False
            content = message["content"]
            if made:
                assert content in text, (row["prompt_index"], content, text)
            elif message["role"] == "assistant" and len(content) > 2:
                assert content not in text, (row["prompt_index"], content, text)
    return rows.num_rows


snippet = yaml.safe_load((folder / "axolotl.yaml").read_text())
found = {entry["split"]: check(entry) for entries in snippet.values() for entry in entries}
assert found == json.loads((folder / "summary.json").read_bytes())["splits"], found
print(json.dumps({f"axolotl {version('axolotl')} {split}": rows for split, rows in found.items()}))
