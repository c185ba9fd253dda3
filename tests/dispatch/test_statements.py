"""What one life asks of the database: a step that begins to ask more is seen here, not in production."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dispatch import tasks
from tests.engine import VIDEO, Engine

MOST = {"submit": 28, "poll": 34, "fetch": 18}  # statements of one task, with BEGIN and COMMIT


def test_each_step_of_a_life_asks_few_statements(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.finish(engine.job())  # everything that a first life makes
    most: Counter[str] = Counter()

    def counted(name: str, task: Callable[..., None]) -> Callable[..., None]:
        def run(*ids: int) -> None:
            with CaptureQueriesContext(connection) as seen:
                task(*ids)
            most[name] = max(most[name], len(seen))

        return run

    for name in MOST:
        monkeypatch.setattr(tasks, name, counted(name, getattr(tasks, name)))
    engine.finish(engine.job())
    assert most.keys() == MOST.keys()
    assert {name: asked for name, asked in most.items() if asked > MOST[name]} == {}


def test_a_submission_is_one_transaction_from_the_key_to_the_answer(engine: Engine) -> None:
    engine.submit(VIDEO, key="first")
    with CaptureQueriesContext(connection) as seen:
        assert engine.submit(VIDEO, key="second").status_code == 201
    first, *between, last = [query["sql"].split()[0] for query in seen.captured_queries]
    assert (first, last) == ("BEGIN", "COMMIT")
    assert "BEGIN" not in between
    assert len(between) <= 10


def test_what_a_refused_submission_wrote_goes_with_its_transaction(engine: Engine) -> None:
    engine.customer.balance_micros = 0
    engine.customer.save(update_fields=["balance_micros"])
    response = engine.submit(VIDEO, key="poor")
    assert response.status_code == 402
    assert not engine.customer.jobs.exists()
    engine.customer.balance_micros = 1_000_000_000
    engine.customer.save(update_fields=["balance_micros"])
    assert engine.submit(VIDEO, key="poor").status_code == 201
