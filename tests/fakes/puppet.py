"""A rank that does what it reads, line by line, from a FIFO. Standard library only: started with -I -S."""

import os
import signal
import subprocess
import sys
import time


def obey(line: str) -> None:
    verb, _, rest = line.partition(" ")
    if verb == "say":
        print(rest, flush=True)
    elif verb == "complain":
        print(rest, file=sys.stderr, flush=True)
    elif verb == "raw":
        os.write(1, bytes.fromhex(rest))
    elif verb == "exit":
        sys.exit(int(rest))
    elif verb == "signal":
        os.kill(os.getpid(), int(rest))
    elif verb == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("hanging", flush=True)
    elif verb == "child":
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
        print(f"child {child.pid}", flush=True)


def main(fifo: str) -> None:
    with open(fifo) as stream:  # noqa: PTH123 - pathlib is slow to import
        for line in stream:
            obey(line.rstrip("\n"))
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
