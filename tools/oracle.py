"""The real SGLang as an oracle: build its environment, run drivers in it, record and check recordings.

Any Python from 3.10 with the standard library alone runs this file. The environment itself needs Python 3.11 (the
pins are for it): the one that $HICACHE_ORACLE_PYTHON names, else `python3.11` on the path, else this one.

    python tools/oracle.py build  [--server] [--sglang 0.5.23]   make or reuse the environment, print its folder
    python tools/oracle.py run    [--server] [--sglang …] SCRIPT [ARGUMENTS…]
    python tools/oracle.py record [pools|models|special|classes|collective|resolution|older|whole] [--only TEXT]
                                  [--seconds N] [--resume]
    python tools/oracle.py sample [N] [--seed TEXT]               N recorded cases anew; fails when a figure changed

Environments lie in $HICACHE_ORACLE, else in hicache-config/ below $XDG_CACHE_HOME or ~/.cache; a folder's name holds
a hash of its pins, so changed pins are another environment. A build that fails leaves nothing behind.

Past 400 lines: pins, environments and recordings are one tool, whose parts share its constants with the tests.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DRIVERS = ROOT / "tests" / "oracle"
STUBS = DRIVERS / "stubs"
sys.path.insert(0, str(DRIVERS))

import recordings  # noqa: E402 - lies beside the drivers

DEFAULT_RELEASE = "0.5.23"
BASE_STUBS = ("import_only.py", "triton", "torchvision")
SERVER_STUBS = ("vllm",)
#: Releases whose host pools import GPU kernels without asking for a GPU first.
KERNEL_STUBS, WITH_KERNEL = ("sgl_kernel",), ("0.5.10", "0.5.11", "0.5.12", "0.5.13")
OLDER = ("older", "whole")
RECORDED = ("pools", "models", "special", "classes", "collective", "resolution", *OLDER)


class OracleError(Exception):
    """Something a person can mend: a missing interpreter, a release without pins, a failed installation."""


def requirement_files(release: str, server: bool) -> list[Path]:
    """The files of pins of an environment, every one of them a part of its identity."""
    base = DRIVERS / f"requirements-{release}.txt"
    if not base.is_file():
        known = sorted(path.stem.removeprefix("requirements-") for path in DRIVERS.glob("requirements-*.txt"))
        known = [name for name in known if not name.endswith("-server")]
        raise OracleError(f"no pins for SGLang {release}: there are pins for {', '.join(known)}")
    extra = DRIVERS / f"requirements-{release}-server.txt"
    return [base, extra] if server and extra.is_file() else [base]


def lies_over(release: str) -> str | None:
    """The release whose packages an older one takes but for its own few; None for a release with all its own."""
    first = requirement_files(release, False)[0].read_text("utf-8")
    named = [line for line in first.splitlines() if line.startswith("-r")]
    return named[0].split()[1].removeprefix("requirements-").removesuffix(".txt") if named else None


def own_pins(release: str, server: bool) -> list[str]:
    """The pinned requirements of a release's own files, sorted, comments and includes left out."""
    lines = (
        line.strip() for path in requirement_files(release, server) for line in path.read_text("utf-8").splitlines()
    )
    return sorted(line for line in lines if line and not line.startswith(("#", "-r")))


def pins(release: str, server: bool) -> list[str]:
    """Every pinned requirement, sorted, with those of the release that it lies over."""
    own, below = own_pins(release, server), lies_over(release)
    names = {line.partition("==")[0] for line in own}
    rest = [] if below is None else pins(below, server)
    return sorted([*own, *(line for line in rest if line.partition("==")[0] not in names)])


def pins_hash(release: str, server: bool = False) -> str:
    """Twelve hex digits that change when a pin changes."""
    return hashlib.sha256("\n".join(["cp311", *pins(release, server)]).encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """Where environments lie."""
    own = os.environ.get("HICACHE_ORACLE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "hicache-config"


def environment_folder(release: str, server: bool) -> Path:
    kind = "-server" if server else ""
    return cache_folder() / f"sglang-{release}{kind}-{pins_hash(release, server)}"


def find_interpreter() -> str:
    """A Python 3.11, which the pins are for."""
    candidates = [os.environ.get("HICACHE_ORACLE_PYTHON"), "python3.11", sys.executable]
    for candidate in filter(None, candidates):
        found = shutil.which(candidate)
        if found is None:
            continue
        asked = subprocess.run(
            [found, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
        )
        if asked.stdout.split() == ["3", "11"]:
            return found
    raise OracleError(
        "the oracle's pins need Python 3.11 and none was found: install it, or name it in HICACHE_ORACLE_PYTHON"
    )


def install(folder: Path, release: str, server: bool) -> None:
    """Fill a fresh environment. Raises OracleError with the installer's own last words."""
    python = folder / "bin" / "python"
    subprocess.run([find_interpreter(), "-m", "venv", str(folder)], check=True)
    files = requirement_files(release, server)
    torch = next(line for line in pins(release, server) if line.startswith("torch=="))
    listed = [option for path in files for option in ("-r", str(path))]
    # torch with its dependencies, since outside CPU builds it brings libraries of its own; all else exactly as pinned
    for what in (["-c", str(files[0]), torch], ["--no-deps", *listed]):
        pip_install(python, release, what)


def lay_over(folder: Path, release: str, below: Path) -> None:
    """Fill an environment that has its own packages alone and takes the others from the one below, torch among them."""
    subprocess.run([find_interpreter(), "-m", "venv", "--without-pip", str(folder)], check=True)
    own, packages = site_packages(folder), site_packages(below)
    what = ["--no-deps", "--no-compile", "--target", str(own), *own_pins(release, False)]
    pip_install(below / "bin" / "python", release, what)
    (own / "below.pth").write_text(f"{packages}\n", encoding="utf-8")


def pip_install(python: Path, release: str, what: list[str]) -> None:
    quiet = ["-q", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"]
    line = [str(python), "-m", "pip", "install", *quiet, *what]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        last = "\n".join(said[-15:])
        raise OracleError(f"installing SGLang {release} failed:\n{last}")


def site_packages(folder: Path) -> Path:
    return folder / "lib" / "python3.11" / "site-packages"


def stubs(release: str, server: bool) -> tuple[str, ...]:
    """The stand-ins that an environment needs."""
    return BASE_STUBS + (SERVER_STUBS if server else ()) + (KERNEL_STUBS if release in WITH_KERNEL else ())


def refresh_stubs(folder: Path, release: str, server: bool) -> None:
    """Copy our stand-ins into the environment where they differ from the committed ones."""
    for name in stubs(release, server):
        source, target = STUBS / name, site_packages(folder) / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)


def rename_scripts(folder: Path, made_in: Path) -> None:
    """Entry scripts name their interpreter by its full path: point them to where the environment lies now."""
    for script in (folder / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            text = script.read_bytes()
            if str(made_in).encode() in text:
                script.write_bytes(text.replace(str(made_in).encode(), str(folder).encode()))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time for one environment."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(release: str = DEFAULT_RELEASE, server: bool = False) -> Path:
    """The environment's folder, made when it is not there. Nothing half-made is ever under the final name."""
    folder = environment_folder(release, server)
    with locked(folder):
        if not (folder / "bin" / "python").exists():
            made_in = folder.with_name(f".{folder.name}.part")
            shutil.rmtree(made_in, ignore_errors=True)
            try:
                below = lies_over(release)
                if below is None:
                    install(made_in, release, server)
                else:
                    lay_over(made_in, release, environment(below, server))
                made_in.rename(folder)
            finally:
                shutil.rmtree(made_in, ignore_errors=True)
            rename_scripts(folder, made_in=made_in)
        refresh_stubs(folder, release, server)
    return folder


def environment(release: str, server: bool) -> Path:
    """The environment to run in: a server's does for everything, so one that is already there is taken."""
    if not server and (environment_folder(release, True) / "bin" / "python").exists():
        server = True
    return build(release, server)


def driver_environment() -> dict[str, str]:
    """The environment variables of a driver: plugins off, no network, the drivers importable."""
    path = os.pathsep.join(filter(None, [str(DRIVERS), os.environ.get("PYTHONPATH")]))
    fixed = {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, "SGLANG_PLUGINS": "none", "OMP_NUM_THREADS": "1", **fixed}


def command(release: str, server: bool, script: Path, arguments: list[str]) -> list[str]:
    """The command line that runs a driver in the environment."""
    return [str(environment(release, server) / "bin" / "python"), str(script), *arguments]


def find_script(name: str) -> Path:
    """A script by path, or by its name in tests/oracle."""
    for candidate in (Path(name), DRIVERS / name):
        if candidate.is_file():
            return candidate.resolve()
    raise OracleError(f"no such script: {name} (looked here and in tests/oracle)")


def ask(
    driver: str, entries: list[dict[str, Any]], release: str = DEFAULT_RELEASE, arguments: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Run a driver over cases and yield its answers as they come. Raises OracleError when the driver itself fails."""
    line = command(release, False, DRIVERS / driver, list(arguments))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as cases:
        for entry in entries:
            print(json.dumps({"id": entry["id"], "case": entry["case"]}), file=cases)
        cases.seek(0)
        run = subprocess.Popen(line, env=driver_environment(), stdin=cases, stdout=subprocess.PIPE, text=True)
        with run:
            assert run.stdout is not None
            try:
                for answer in run.stdout:
                    if answer.startswith("{"):
                        yield json.loads(answer)
            finally:
                if run.poll() is None and sys.exc_info()[0] is GeneratorExit:
                    run.terminate()  # nobody wants the rest
    if run.returncode:
        raise OracleError(f"{driver} ended with status {run.returncode}: its last words are above")


def header(release: str) -> dict[str, Any]:
    torch = next(line for line in pins(release, False) if line.startswith("torch=="))
    return {"sglang": release, "torch": torch.removeprefix("torch=="), "pins": pins_hash(release)}


def keep(
    what: str,
    path: Path,
    entries: list[dict[str, Any]],
    answers: dict[str, Any],
    release: str = DEFAULT_RELEASE,
) -> None:
    """Write what was answered of a list of cases."""
    done = [{**entry, "result": answers[entry["id"]]} for entry in entries if entry["id"] in answers]
    complete = len(done) == len(entries)
    recordings.write(path, {"what": what, **header(release), "complete": complete}, done)


def answers_of(
    driver: str, entries: list[dict[str, Any]], deadline: float | None, release: str = DEFAULT_RELEASE
) -> Iterator[dict[str, Any]]:
    """The results so far by id, every hundred answers and at the end; with a deadline, until then."""
    answers: dict[str, Any] = {}
    try:
        for answer in ask(driver, entries, release):
            answers[answer["id"]] = answer["result"]
            if deadline is not None and time.monotonic() > deadline:
                break
            if len(answers) % 100 == 0:
                print(f"{driver}: {len(answers)} of {len(entries)}", file=sys.stderr, flush=True)
                yield answers
    except OracleError as error:  # what there is by then is kept, and its header says that it is a part
        print(f"oracle: {error}", file=sys.stderr)
    yield answers


def case_lists(what: str) -> dict[str, list[dict[str, Any]]]:
    """The committed lists of cases by the name of their recording."""
    if what == "pools":
        import generate

        return {f"pools-{name}": generate.cases(name) for name in generate.FAMILIES}
    if what == "models":
        import model_cases

        return {"models": model_cases.cases()}
    if what == "special":
        import special_cases

        return {"special": special_cases.cases()}
    if what == "classes":
        import class_cases

        return {"classes": class_cases.cases()}
    if what == "resolution":
        import resolution_cases

        return {"resolution": list(resolution_cases.cases())}
    import collective_cases

    return {"collective": collective_cases.cases()}


def recorded_before(name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Results of these very cases that lie in the recording, made with the same pins."""
    path = recordings.FOLDER / f"{name}.jsonl"
    if not path.is_file():
        return {}
    first, old = recordings.read(path)
    wanted = {entry["id"]: entry["case"] for entry in entries}
    same = header(DEFAULT_RELEASE).items() <= first.items()
    return {entry["id"]: entry["result"] for entry in old if same and wanted.get(entry["id"]) == entry["case"]}


def record(what: str, only: str, seconds: float | None, resume: bool) -> None:
    """Record what the lists of cases come to, those whose id holds `only`, anew or (`resume`) the missing ones.

    Whole models are taken question by question, so that a recording which is stopped early holds something of each.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    lists = case_lists(what)
    before = {key: old for name in lists for key, old in recorded_before(name, lists[name]).items()}
    before = {key: old for key, old in before.items() if resume or only not in key}
    todo = [
        entry for entries in lists.values() for entry in entries if only in entry["id"] and entry["id"] not in before
    ]
    if what == "models":
        todo.sort(key=lambda entry: entry["id"].rpartition("/")[2])
    for answers in answers_of(f"{what}.py", todo, deadline):
        for name, entries in lists.items():
            keep(what, recordings.FOLDER / f"{name}.jsonl", entries, {**before, **answers})
    for name, entries in lists.items():
        done = sum(entry["id"] in before or entry["id"] in answers for entry in entries)
        print(f"{name}: {done} of {len(entries)} cases recorded", flush=True)


def record_older(what: str, only: str, seconds: float | None) -> None:
    """Record the releases before the newest whose number holds `only`, each in its own environment.

    `what` is "older" for pools and "whole" for whole models.
    """
    import older_cases

    driver, list_of = {
        "older": ("pools.py", older_cases.every_case),
        "whole": ("models.py", older_cases.whole_models),
    }[what]
    for release in older_cases.RELEASES:
        entries = list_of(release)
        if only not in release or not entries:
            continue
        deadline = None if seconds is None else time.monotonic() + seconds
        answers: dict[str, Any] = {}
        for answers in answers_of(driver, entries, deadline, release):  # noqa: B007 - the last one holds them all
            pass
        keep(what, recordings.FOLDER / f"{what}-{release}.jsonl.gz", entries, answers, release)
        print(f"{what} {release}: {len(answers)} of {len(entries)} cases recorded", flush=True)


def sample(count: int, seed: str) -> int:
    """Make some recorded cases anew, three of five of them pools. The number of those that changed."""
    changed, fifth = 0, count // 5
    for what, number in (("pools", count - 2 * fifth), ("models", fifth), ("special", fifth)):
        entries = [entry for path in recordings.files(what) for entry in recordings.read(path)[1]]
        chosen = {entry["id"]: entry for entry in random.Random(seed).sample(entries, min(number, len(entries)))}
        for answer in ask(f"{what}.py", list(chosen.values())) if chosen else ():
            lines = recordings.differences(chosen.pop(answer["id"])["result"], answer["result"])
            if lines:
                changed += 1
                print(f"{what} {answer['id']} differs from its recording:")
                print("\n".join(f"  {line}" for line in lines[:12]))
        if chosen:
            raise OracleError(f"no answer for {', '.join(sorted(chosen))}")
        print(f"{what}: {min(number, len(entries))} of {len(entries)} recorded cases made anew", flush=True)
    print(f"{count - changed} passed, {changed} failed")
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(prog="oracle.py", description="The real SGLang as an oracle.")
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--sglang", default=DEFAULT_RELEASE, metavar="VERSION", help="the release (default %(default)s)"
    )
    shared.add_argument("--server", action="store_true", help="with the packages that a server needs")
    commands.add_parser("build", parents=[shared], help="make or reuse the environment, print its folder")
    run = commands.add_parser("run", parents=[shared], help="run a driver in the environment")
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    again = commands.add_parser("record", help="record anew into tests/recorded/")
    again.add_argument("what", nargs="?", default="all", choices=["all", *RECORDED])
    again.add_argument("--only", default="", metavar="TEXT", help="families or cases whose name holds this")
    again.add_argument(
        "--seconds", type=float, metavar="N", help="stop after so long and say in the header that it is a part"
    )
    again.add_argument("--resume", action="store_true", help="only the cases that are not recorded yet")
    some = commands.add_parser("sample", help="make some recorded cases anew; fails when a figure changed")
    some.add_argument("count", nargs="?", type=int, default=50)
    some.add_argument("--seed", default="hicache", help="another sample (default %(default)s)")
    options = parser.parse_args()
    try:
        if options.command == "record":
            for what in RECORDED if options.what == "all" else [options.what]:
                if what in OLDER:
                    record_older(what, options.only, options.seconds)
                else:
                    record(what, options.only, options.seconds, options.resume)
            return 0
        if options.command == "sample":
            return 1 if sample(options.count, options.seed) else 0
        if options.command == "build":
            print(build(options.sglang, options.server))
            return 0
        line = command(options.sglang, options.server, find_script(options.script), options.arguments)
        return subprocess.run(line, env=driver_environment(), check=False).returncode
    except OracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
