"""Install each wheel of a folder that this interpreter takes, beside numpy alone, and use it.

    python .ci/try_wheels.py dist

Each gets an empty environment; what is for another platform is named and left out. At least one
wheel must be taken. Needs the package index, for numpy, and no checkout: the release workflow runs
it on each platform, and in containers of the oldest systems.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path

USE = """
import sys
from pathlib import Path

import tokfold

schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
    "additionalProperties": False,
}
tokens = [bytes([byte]) for byte in range(256)]
vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[256])
matcher = tokfold.Matcher(tokfold.compile(schema, vocabulary), max_tokens=40)
assert matcher.accept_string('{"name": "Ada", "year": 18')
row = tokfold.allocate_bitmask(1, len(vocabulary))
matcher.fill_bitmask(row)
allowed = {token for token in range(257) if row[0, token >> 5] >> (token & 31) & 1}
assert ord("4") in allowed and ord("}") in allowed and ord("x") not in allowed, sorted(allowed)
assert matcher.accept_string('43}') and matcher.accept_token(256) and matcher.is_terminated
grammar = tokfold.Grammar.from_ebnf("root ::= [0-9]+")
small = tokfold.Vocabulary([b"1", b"23", b"x", b"</s>"], stop_token_ids=[3])
assert tokfold.compile_classes(grammar, small).class_of.tolist() == [0, 0, -1, 1]
assert Path(tokfold.__file__).is_relative_to(sys.prefix), tokfold.__file__
"""


def main() -> None:
    """Try the wheels, and say what became of each."""
    if len(sys.argv) != 2:
        sys.exit("usage: python .ci/try_wheels.py FOLDER")
    wheels = sorted(Path(sys.argv[1]).resolve().glob("tokfold-*.whl"))
    tried = [wheel for wheel in wheels if is_usable(wheel)]
    here = f"Python {platform.python_version()}, {platform.platform()}"
    if not tried:
        sys.exit(f"error: none of {len(wheels)} wheels is for {here}")
    print(f"{len(tried)} of {len(wheels)} wheels were installed and used: {here}")


def is_usable(wheel: Path) -> bool:
    """Whether the wheel is for this platform; ends the program where it then does not work."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        programs = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--no-deps", str(wheel)]
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if "is not a supported wheel on this platform" in done.stderr:
            print(f"{wheel.name}: for another platform")
            return False
        if done.returncode != 0:
            sys.exit(f"{wheel.name}: {done.stderr}")
        # No numpy is compiled here: an old system takes the last one that has a wheel for it.
        requirements = [*pip, "install", "--quiet", "--only-binary", ":all:", "numpy>=1.26"]
        subprocess.run(requirements, check=True)
        subprocess.run([str(programs / "python"), "-I", "-c", USE], check=True, cwd=folder)
    print(f"{wheel.name}: installed and used")
    return True


if __name__ == "__main__":
    main()
