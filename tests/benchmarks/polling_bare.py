"""Asks one address again and again with `requests`; frozen, and nothing of the product in it."""

import sys

import requests

from tests.benchmarks.serving import serve


def main(address: str) -> None:
    session = requests.Session()
    session.trust_env = False

    def poll() -> None:
        assert (
            session.get(f"{address}/contents/generations/tasks/cgt-1", timeout=20).json()["status"]
            == "running"
        )

    poll()
    serve(poll)


if __name__ == "__main__":
    main(sys.argv[1])
