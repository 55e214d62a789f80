"""What the checks of this folder share: programs that are run, and what cannot be."""

import shutil
import subprocess


class Impossible(Exception):
    """Something could not be run."""


def run(*arguments):
    """What a program prints, which must succeed."""
    arguments = [str(argument) for argument in arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Impossible(f"{' '.join(arguments)}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def needs(*programs):
    """All of these programs must be there."""
    missing = [str(program) for program in programs if not shutil.which(str(program))]
    if missing:
        raise Impossible(f"missing: {', '.join(missing)} (make clients installs what tests use)")
