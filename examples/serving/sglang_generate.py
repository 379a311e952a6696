"""Generate with SGLang within a schema, tokfold making the masks.

pip install ".[sglang]"
python examples/serving/sglang_generate.py path/to/model "A person, as JSON:"
"""

import json
import sys

import sglang
import tokfold.sglang

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


def main() -> None:
    """Ask for a person, and print the answer."""
    path, prompt = sys.argv[1:]
    # SGLang's other processes find tokfold by its entry point.
    tokfold.sglang.register()
    engine = sglang.Engine(model_path=path, grammar_backend="tokfold")
    options = {"json_schema": json.dumps(SCHEMA), "max_new_tokens": 200}
    print(engine.generate(prompt, options)["text"])
    engine.shutdown()


if __name__ == "__main__":
    main()
