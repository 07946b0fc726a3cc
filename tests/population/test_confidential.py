from __future__ import annotations

import copy
import logging
import pickle
import traceback

import pytest

from dualmandate.population import Confidential

CANARY = "canary-7f3a"


def box() -> Confidential[dict[str, str]]:
    return Confidential("children.parquet", {"name": CANARY})


def test_it_prints_only_its_label() -> None:
    sealed = box()
    said = [repr(sealed), str(sealed), f"{sealed}", f"{sealed!r:>40}", f"{sealed:>40}", f"{[sealed]}", "%s" % sealed]  # noqa: UP031
    assert all(CANARY not in words for words in said)
    assert repr(sealed) == "Confidential('children.parquet')"
    assert sealed.label == "children.parquet"


def test_it_opens_for_a_purpose_only() -> None:
    assert box().open_for("tabulation") == {"name": CANARY}
    with pytest.raises(AssertionError, match="stated purpose"):
        box().open_for("")


def test_it_does_not_leave_the_process() -> None:
    sealed = box()
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError) as refusal:
            leave(sealed)
        assert CANARY not in str(refusal.value)
    with pytest.raises(TypeError):
        sealed.__getstate__()
    with pytest.raises(TypeError):
        sealed.__reduce_ex__(5)
    with pytest.raises(TypeError):
        vars(sealed)


def test_tracebacks_with_locals_and_logs_show_only_its_label(caplog: pytest.LogCaptureFixture) -> None:
    def fails(sealed: Confidential[dict[str, str]]) -> None:
        raise ValueError(f"cannot read {sealed}")

    try:
        fails(box())
    except ValueError as error:
        printed = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        logging.getLogger("dualmandate").exception("failed on %r", box())
    assert "Confidential('children.parquet')" in printed
    assert CANARY not in printed
    assert CANARY not in caplog.text


def test_it_does_not_change_and_is_equal_to_itself_only() -> None:
    sealed = box()
    with pytest.raises(AttributeError) as refusal:
        sealed._label = CANARY
    assert CANARY not in str(refusal.value)
    with pytest.raises(AttributeError):
        del sealed._label
    assert sealed != box()
    assert sealed == sealed
    assert len({sealed, box()}) == 2


def test_exchanged_arguments_print_nothing() -> None:
    with pytest.raises(TypeError) as refusal:
        Confidential({"name": CANARY}, "label")  # type: ignore[arg-type]
    assert CANARY not in str(refusal.value)
