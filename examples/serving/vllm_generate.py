"""Generate with vLLM within a schema, tokfold making the masks.

pip install ".[vllm]"
python examples/serving/vllm_generate.py path/to/model "A person, as JSON:"
"""

import sys

import tokfold.vllm
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


def main() -> None:
    """Ask for a person, and print the answer."""
    path, prompt = sys.argv[1:]
    # vLLM's engine is another process: it finds tokfold by its entry point.
    tokfold.vllm.install()
    model = LLM(path)
    options = SamplingParams(
        max_tokens=200, structured_outputs=StructuredOutputsParams(json=SCHEMA)
    )
    (output,) = model.generate([prompt], options)
    print(output.outputs[0].text)


if __name__ == "__main__":
    main()
