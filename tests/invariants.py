"""Asserted after every scenario, whatever kind of test ran it."""

from dispatch.invariants import violations


def assert_invariants() -> None:
    found = violations()
    assert not found, "\n".join(f"{each.subject}: {each.invariant} ({each.found})" for each in found)
