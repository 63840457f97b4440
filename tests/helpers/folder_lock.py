"""A folder that another process writes in."""

import contextlib
import subprocess
import sys

WRITER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def lock_folder(folder):
    """Lock `folder` from another, unrelated process."""
    command = [sys.executable, "-S", "-c", WRITER, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as other:
        yield int(other.stdout.readline())
        other.stdin.close()
