"""Where Horovod's ranks meet: run as `python -m training.engines.horovod_rendezvous ADDRESS PORT HOST:RANKS[,…]`.

The server is Horovod's own (`horovod.runner.http.http_server`), which `horovodrun` would start; it serves until it is
ended. It is bound to one address, where `horovodrun` binds to all.
"""

from __future__ import annotations

import sys

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer


def main(address: str, port: int, hosts: str) -> None:
    """Serve the ranks on `hosts` until the process is ended."""
    server = RendezvousHTTPServer((address, port), RendezvousHandler, verbose=0)
    server.init(get_host_assignments(parse_hosts(hosts), sum(host.slots for host in parse_hosts(hosts))))
    print(f"Horovod's rendezvous server listens on {address}:{port} for {hosts}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
