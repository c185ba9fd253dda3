"""API keys."""

from billing.keys import hash_of, is_well_formed, new_key


def test_a_new_key_is_well_formed_and_shows_itself_once() -> None:
    key = new_key()
    assert is_well_formed(key.secret)
    assert key.hash == hash_of(key.secret)
    assert key.secret not in repr(key)
    assert key.secret.startswith(key.prefix)
    assert key.secret.endswith(key.last_four)


def test_a_mistyped_key_is_refused_without_a_look_up() -> None:
    secret = new_key().secret
    changed = secret[:20] + ("a" if secret[20] != "a" else "b") + secret[21:]
    assert not is_well_formed(changed)
    assert not is_well_formed(secret + "a")
    assert not is_well_formed("fy_live_")


def test_two_keys_are_never_alike() -> None:
    assert len({new_key().hash for _ in range(100)}) == 100
