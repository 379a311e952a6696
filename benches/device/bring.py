"""Pack what a machine with a GPU needs and cannot download: wheels, and tokenizers.

    make wheel
    python benches/device/bring.py --python 3.12 --tokenizer path/to/llama3 path/to/o200k
    rsync -a . gpu-machine:tokfold/ && ssh gpu-machine 'cd tokfold && make device'

The folder, .device beside the checkout's own files, holds wheels/ (tokfold's of dist/, and those of
wheels.txt for Linux on x86-64) and tokenizers/NAME/tokenizer.json.xz. Where PyTorch, transformers,
rich, typer, pytest, pytest-xdist, pytest-timeout or hypothesis are missing there too, add them to
wheels.txt: here they are taken for installed.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GLIBCS = (17, 24, 27, 28, 31)


def main() -> None:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="3.12", help="version of Python there (default: 3.12)")
    parser.add_argument("--tokenizer", nargs="*", default=[], type=Path, help="folders or files")
    parser.add_argument("--to", type=Path, default=ROOT / ".device", metavar="FOLDER")
    options = parser.parse_args()
    wheels = options.to / "wheels"
    shutil.rmtree(options.to, ignore_errors=True)
    wheels.mkdir(parents=True)
    own = sorted((ROOT / "dist").glob("tokfold-*.whl"))
    if not own:
        sys.exit("error: dist/ holds no wheel of tokfold: run `make wheel` first")
    shutil.copy(own[-1], wheels)
    wanted = [line for line in (HERE / "wheels.txt").read_text().split("\n") if line[:1].isalnum()]
    for name in wanted:
        if name == "pydantic-core":
            name += "==" + _needed(wheels, "pydantic-", name)
        print(f"downloading {name}", flush=True)
        _download(name, options.python, wheels)
    for path in options.tokenizer:
        source = path if path.is_file() else path / "tokenizer.json"
        folder = options.to / "tokenizers" / (path.parent if path.is_file() else path).name
        folder.mkdir(parents=True)
        print(f"packing {source}", flush=True)
        packed = lzma.compress(source.read_bytes(), preset=3)
        (folder / "tokenizer.json.xz").write_bytes(packed)
        config = source.with_name("tokenizer_config.json")
        if config.is_file():
            shutil.copy(config, folder)
    size = sum(path.stat().st_size for path in options.to.rglob("*") if path.is_file())
    print(f"{options.to}: {size / 2**20:.1f} MiB")


def _download(name: str, python: str, to: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(to)]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    for minor in GLIBCS:
        command += ["--platform", f"manylinux_2_{minor}_x86_64"]
    command += ["--platform", "manylinux2014_x86_64", name]
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"error: there is no wheel of {name} for Python {python} on Linux")


def _needed(wheels: Path, of: str, name: str) -> str:
    """The version of a package that a wheel asks for."""
    wheel = next(path for path in wheels.iterdir() if path.name.startswith(of))
    with ZipFile(wheel) as archive:
        place = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        asked = HeaderParser().parsestr(archive.read(place).decode()).get_all("Requires-Dist", [])
    found = [line for line in asked if line.startswith(f"{name}==")]
    if not found:
        sys.exit(f"error: {wheel.name} does not say which {name} it needs")
    return found[0].removeprefix(f"{name}==").partition(";")[0].strip()


if __name__ == "__main__":
    main()
