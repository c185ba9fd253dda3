"""The fair order: who is served next, what it costs them, and what nobody can gain by coming and going."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.priorities import LEVELS, PriorityError, head_start, level_of, parse_priorities
from catalog.shape import ImageShape, VideoShape
from dispatch.estimates import IMAGE_MS, MOST_MS, estimated_ms
from dispatch.fairness import (
    CLASS_KEYS,
    QUANTUM_MS,
    FairQueue,
    Head,
    Member,
    Ring,
    TenantHeads,
    come_back,
)

A, B, C = 1, 2, 3
JOB = 80_000


def served(ring: Ring, jobs: int, cost_ms: int = JOB) -> list[int]:
    """Who is served, all of them having work without end."""
    order = []
    for _ in range(jobs):
        turn = ring.next()
        assert turn is not None
        ring.serve(turn, cost_ms)
        order.append(turn.key)
    return order


def test_equal_tenants_take_turns() -> None:
    assert served(Ring([Member(A, 1), Member(B, 1), Member(C, 1)]), 6) == [A, B, C, A, B, C]


@pytest.mark.parametrize(("weights", "jobs"), [((3, 1), 400), ((6, 3), 900), ((5, 2), 700)])
def test_what_is_served_follows_the_weights(weights: tuple[int, int], jobs: int) -> None:
    counts = Counter(served(Ring([Member(A, weights[0]), Member(B, weights[1])]), jobs))
    assert counts[A] / weights[0] == pytest.approx(counts[B] / weights[1], rel=0.02)


def test_dear_jobs_count_for_what_they_cost() -> None:
    ring, cost = Ring([Member(A, 1), Member(B, 1)]), {A: 10 * JOB, B: JOB}
    spent: Counter[int] = Counter()
    for _ in range(1_100):
        turn = ring.next()
        assert turn is not None
        ring.serve(turn, cost[turn.key])
        spent[turn.key] += cost[turn.key]
    assert abs(spent[A] - spent[B]) <= QUANTUM_MS + 10 * JOB


def test_who_comes_new_is_served_before_the_next_of_those_who_wait_for_long() -> None:
    """S39: a thousand jobs of one, one of another, and it begins with the next completion."""
    ring = Ring([Member(A, 1)])
    served(ring, 2)
    newcomer = come_back(Member(B, 1), laps=ring.lap)
    later = Ring([*ring.members.values(), newcomer], ring.turn, ring.lap)
    assert served(later, 1) == [B]


def test_who_comes_new_is_served_once_and_then_stands_in_the_ring() -> None:
    ring = Ring([Member(A, 1), come_back(Member(B, 1), laps=1)])
    assert served(ring, 4) == [B, A, B, A]


def test_who_only_looks_changes_nothing() -> None:
    ring = Ring([Member(A, 1), Member(B, 2)])
    assert ring.next() == ring.next()
    assert [member.deficit_ms for member in ring.members.values()] == [0, 0]


def test_who_is_left_out_neither_gains_nor_loses_by_the_turns_of_others() -> None:
    ring = Ring([Member(A, 1, 500), Member(B, 1, -700), Member(C, 1)])
    ring.drop(A)
    ring.drop(B)
    served(ring, 50)
    assert (ring.members[A].deficit_ms, ring.members[B].deficit_ms) == (500, -700)


def test_a_ring_without_members_has_no_turn() -> None:
    ring = Ring([Member(A, 1)])
    ring.drop(A)
    ring.drop(A)
    assert ring.next() is None


def test_the_turn_goes_on_where_it_stood_when_everything_is_read_anew() -> None:
    ring = Ring([Member(key, key) for key in (A, B, C)])
    whole = served(Ring([Member(key, key) for key in (A, B, C)]), 40)
    order = []
    for _ in range(40):
        order += served(ring, 1)
        copies = [Member(m.key, m.weight, m.deficit_ms, m.is_new) for m in ring.members.values()]
        ring = Ring(copies, ring.turn, ring.lap)
    assert order == whole


def test_credit_is_lost_by_having_nothing() -> None:
    assert come_back(Member(A, 2, 9_000), laps=0) == Member(A, 2, 0)


def test_a_debt_is_worked_off_by_laps_and_never_turns_into_credit() -> None:
    assert come_back(Member(A, 2, -50_000), laps=2).deficit_ms == -50_000 + 2 * 2 * QUANTUM_MS
    assert come_back(Member(A, 2, -50_000), laps=3) == Member(A, 2, 2 * QUANTUM_MS, is_new=True)


def test_coming_and_going_with_large_jobs_takes_no_more_than_the_share() -> None:
    """One with a single large job each time, idle once that began, against one that always waits."""
    ring, spent = Ring([Member(A, 1)]), Counter({A: 0, B: 0})
    guest, left_at = Member(B, 1), 0
    for _ in range(400):
        guest = come_back(guest, ring.lap - left_at)
        ring = Ring([ring.members[A], guest], ring.turn, ring.lap)
        turn = ring.next()
        assert turn is not None
        cost = 10 * JOB if turn.key == B else JOB
        ring.serve(turn, cost)
        spent[turn.key] += cost
        guest, left_at = ring.members[B], ring.lap
    assert spent[B] <= spent[A] + 10 * JOB + QUANTUM_MS


costs = st.integers(1, 400_000)


@given(
    weights=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    work=st.lists(costs, min_size=1, max_size=300),
    start=st.integers(0, 250),
)
def test_over_any_window_the_served_cost_is_within_one_quantum_and_one_largest_job_of_the_share(
    weights: list[int], work: list[int], start: int
) -> None:
    """I21: of members that always wait; per weight, so that all should be the same but for a job each."""
    ring = Ring([Member(key, weight) for key, weight in enumerate(weights)])
    window: Counter[int] = Counter()
    for number, cost in enumerate(work):
        turn = ring.next()
        assert turn is not None
        ring.serve(turn, cost)
        if number >= start:
            window[turn.key] += cost
        for member in ring.members.values():
            assert -max(work) < member.deficit_ms <= member.share(QUANTUM_MS)
    largest = max(work)
    for one, weight in enumerate(weights):
        for other, other_weight in enumerate(weights):
            apart = window[one] / weight - window[other] / other_weight
            assert abs(apart) <= QUANTUM_MS + largest / weight + largest / other_weight


@given(work=st.lists(st.tuples(costs, st.booleans()), max_size=100))
def test_no_deficit_ever_leaves_its_bounds_whoever_is_left_out(work: list[tuple[int, bool]]) -> None:
    members = [Member(key, key) for key in (A, B, C)]
    turn_at, lap = 0, 0
    for cost, leave_out in work:
        ring = Ring(members, turn_at, lap)
        before = {member.key: member.deficit_ms for member in members}
        if leave_out:
            ring.drop(B)
        turn = ring.next()
        assert turn is not None
        ring.serve(turn, cost)
        turn_at, lap = ring.turn, ring.lap
        if leave_out:
            assert ring.members[B].deficit_ms == before[B]
        for member in members:
            assert -400_000 < member.deficit_ms <= member.share(QUANTUM_MS)


def whole_queue(**tenants: list[Member]) -> FairQueue:
    classes = Ring(
        [
            Member(CLASS_KEYS["interactive"], 6),
            Member(CLASS_KEYS["standard"], 3),
            Member(CLASS_KEYS["batch"], 1),
        ]
    )
    return FairQueue(classes, {name: Ring(tenants.get(name, [])) for name in CLASS_KEYS})


def test_classes_share_by_weight_and_batch_never_starves() -> None:
    queue = whole_queue(interactive=[Member(A, 1)], standard=[Member(A, 1)], batch=[Member(B, 1)])
    order = []
    for _ in range(1_000):
        pick = queue.next()
        assert pick is not None
        queue.serve(pick, JOB)
        order.append(pick.service_class)
    counts = Counter(order)
    assert counts["interactive"] == pytest.approx(600, abs=6)
    assert counts["standard"] == pytest.approx(300, abs=6)
    assert counts["batch"] == pytest.approx(100, abs=6)
    between = [at for at, name in enumerate(order) if name == "batch"]
    assert max(b - a for a, b in pairwise(between)) <= 12


def test_a_class_whose_tenants_have_all_dropped_out_is_passed_by() -> None:
    queue = whole_queue(interactive=[Member(A, 1), Member(B, 1)], batch=[Member(C, 1)])
    queue.drop("interactive", A)
    queue.drop("interactive", B)
    pick = queue.next()
    assert pick is not None
    assert (pick.service_class, pick.customer) == ("batch", C)
    queue.drop("batch", C)
    assert queue.next() is None


def head(job: int, user: str = "", at: float = 0, line: int = 1) -> Head:
    return Head(job, line, user, at, JOB)


def begun(heads: TenantHeads) -> list[int]:
    order = []
    while (found := heads.next()) is not None:
        heads.take(found, served=True)
        order.append(found.job)
    return order


def test_end_users_take_turns_and_within_one_the_earliest_goes_first() -> None:
    heads = TenantHeads(last_end_user="ann")
    heads.put([head(1, "ann", 1), head(2, "ann", 0), head(3, "bob", 5), head(4, "cid", 9), head(5, "bob", 5)])
    assert begun(heads) == [3, 4, 2, 5, 1]
    assert heads.last_end_user == "ann"


def test_a_job_that_could_not_begin_costs_its_end_user_no_turn() -> None:
    heads = TenantHeads()
    heads.put([head(1, "ann", 1), head(2, "ann", 2), head(3, "bob")])
    first = heads.next()
    assert first is not None
    heads.take(first, served=False)
    assert begun(heads) == [2, 3]


def test_a_line_that_can_not_go_on_leaves_the_tenants_other_lines() -> None:
    heads = TenantHeads()
    heads.put([head(1, line=1), head(2, line=2, at=5), head(3, "bob", line=1)])
    heads.drop_line(1)
    assert begun(heads) == [2]


def test_a_job_costs_the_measured_median_of_its_kind_times_its_results() -> None:
    shape = VideoShape("text_to_video", duration_s=5, resolution="1080p", sample_count=2)
    assert estimated_ms(shape, 70_000) == 140_000


def test_where_nothing_was_measured_longer_and_sharper_costs_more() -> None:
    def cost(duration_s: int, resolution: str) -> int:
        return estimated_ms(
            VideoShape("text_to_video", duration_s=duration_s, resolution=resolution), known_ms=None
        )

    assert cost(5, "480p") < cost(5, "720p") < cost(5, "1080p") < cost(10, "1080p")
    assert estimated_ms(ImageShape("text_to_image", n=4), None) == 4 * IMAGE_MS


def test_no_job_costs_nothing_or_more_than_the_largest() -> None:
    assert estimated_ms(ImageShape("text_to_image"), 0) == 1
    assert estimated_ms(ImageShape("text_to_image", n=9), MOST_MS) == MOST_MS


def test_a_priority_is_a_head_start_that_age_makes_up_for() -> None:
    assert head_start(0).total_seconds() == 0
    assert head_start(2) == -head_start(-2) > head_start(1)
    assert level_of("launch", {"launch": 3}) == 3
    assert level_of("other", {"launch": 3}) == 0


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ([], "mapping"),
        ({"": 1}, "characters"),
        ({"a": 6}, "level"),
        ({"a": "1"}, "level"),
        ({"a": True}, "level"),
        ({str(number): 0 for number in range(201)}, "at most"),
    ],
)
def test_priorities_that_can_not_be_used_are_refused_with_what_is_wrong(document: object, word: str) -> None:
    with pytest.raises(PriorityError, match=word):
        parse_priorities(document)
    assert parse_priorities({"a": LEVELS.start}) == {"a": -5}
