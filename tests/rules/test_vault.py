"""Credentials at rest."""

import base64

import pytest

from catalog.vault import MasterKeys, VaultError, parse_master_keys, reseal, seal, unseal

OLD = "old:" + base64.b64encode(b"o" * 32).decode()
NEW = "new:" + base64.b64encode(b"n" * 32).decode()
ROW = "channel:chn_1:credential"


def keys(*entries: str) -> MasterKeys:
    return parse_master_keys(list(entries))


def test_a_secret_opens_in_its_own_row_only() -> None:
    envelope = seal("sk-very-secret", ROW, keys(OLD))
    assert unseal(envelope, ROW, keys(OLD)) == "sk-very-secret"
    with pytest.raises(VaultError, match="does not open"):
        unseal(envelope, "channel:chn_2:credential", keys(OLD))


def test_neither_the_envelope_nor_the_keys_show_a_secret() -> None:
    assert "sk-very-secret" not in seal("sk-very-secret", ROW, keys(OLD))
    assert "ooo" not in repr(keys(OLD))
    assert seal("same", ROW, keys(OLD)) != seal("same", ROW, keys(OLD))


def test_after_a_rotation_the_old_key_still_opens_and_the_new_one_seals() -> None:
    envelope = seal("secret", ROW, keys(OLD))
    assert unseal(envelope, ROW, keys(NEW, OLD)) == "secret"
    renewed = reseal(envelope, ROW, keys(NEW, OLD))
    assert unseal(renewed, ROW, keys(NEW)) == "secret"
    assert reseal(renewed, ROW, keys(NEW, OLD)) == renewed


def test_a_missing_master_key_is_named_never_replaced() -> None:
    envelope = seal("secret", ROW, keys(OLD))
    with pytest.raises(VaultError, match="master key 'old' is not among"):
        unseal(envelope, ROW, keys(NEW))


@pytest.mark.parametrize(
    "stored",
    [
        "sk-never-sealed",
        "17",
        "[]",
        "{}",
        '{"key":"old","wrapped":"AAAA","sealed":"AAAA"}',
        '{"key":"old","wrapped":"?","sealed":"?"}',
        '{"key":"old","wrapped":"é","sealed":"é"}',
        '{"key":"old","wrapped":null,"sealed":1}',
        seal("secret", ROW, keys(OLD))[:-9],
    ],
)
def test_a_text_that_was_never_sealed_is_told_with_its_row_and_what_to_do(stored: str) -> None:
    for key in (OLD, NEW):
        with pytest.raises(VaultError, match=f"{ROW} holds no sealed secret: enter the credential again"):
            unseal(stored, ROW, keys(key))
        with pytest.raises(VaultError, match=f"{ROW} holds no sealed secret: enter the credential again"):
            reseal(stored, ROW, keys(key))


@pytest.mark.parametrize("entries", [[], ["nokey"], ["short:" + base64.b64encode(b"x").decode()], [":abc"]])
def test_a_master_key_of_the_wrong_form_is_refused(entries: list[str]) -> None:
    with pytest.raises(VaultError):
        parse_master_keys(entries)
