"""Serves choices of LiteLLM's cost-based strategy: `python -m tests.benchmarks.routing_litellm SIZE`.

It imports nothing of the product. Frozen: it is what the product is measured against.
"""

import asyncio
import os
import sys
from importlib.metadata import version
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no look-up over the network

from litellm import Router  # it reads the environment when it is imported

from tests.benchmarks.serving import serve

MESSAGES = [{"role": "user", "content": "a fox"}]


def deployments(size: int) -> list[dict[str, Any]]:
    return [
        {
            "model_name": "m",
            "litellm_params": {
                "model": "openai/gpt-4o-mini",
                "api_key": "none",
                "api_base": f"http://host-{number}",
                "input_cost_per_token": (30 + number % 60) / 1_000_000_000,
                "output_cost_per_token": 0.000001,
            },
            "model_info": {"id": f"d{number:04}"},
        }
        for number in range(size)
    ]


def main(size: int) -> None:
    loop = asyncio.new_event_loop()
    router = Router(model_list=deployments(size), routing_strategy="cost-based-routing")

    def choose() -> Any:
        return loop.run_until_complete(
            router.async_get_available_deployment(model="m", messages=MESSAGES, request_kwargs={})
        )

    chosen = choose()["model_info"]["id"]
    if chosen != "d0000":
        raise SystemExit(f"{chosen} is not the cheapest")
    serve(choose, version=version("litellm"))


if __name__ == "__main__":
    main(int(sys.argv[1]))
