"""Records: whole, shared by writers, merged; damaged and foreign files are said; builds take what is better."""

from __future__ import annotations

import sqlite3
import threading
import warnings
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.network import network_of
from relaylab.codegen.operations.records import RecordStore, RecordsWarning, TuningRecord, current_version, kernel_key
from relaylab.contrib import graph_executor
from relaylab.runtime import cpu
from relaylab.runtime.threads import num_threads
from relaylab.support.errors import RelayError

X, Y = relay.var("x", shape=(6, 20)), relay.var("y", shape=(20, 40))
PRODUCT = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([X, Y], relay.nn.matmul(X, Y))))
STEPS = "reorder i1 i0\nvectorize k\nparallel i1"


def record(**settings) -> TuningRecord:
    found = TuningRecord("kernel", "cpu", "v", 1, "vectorize k", "ok", 1.0, 2.0, 0.0, "dense", "[]")
    return replace(found, **settings)


def product_record(**settings) -> TuningRecord:
    """A record of the product above, on this machine."""
    main = relay.optimize(PRODUCT, "llvm")[0]["main"]
    (operation,) = network_of(main).operations
    own = {"cpu": CpuTarget.parse("llvm").key, "version": current_version(), "threads": num_threads()}
    return record(**{"kernel": kernel_key(operation), "schedule": STEPS, **own, **settings})


def built(path, **config):
    with relay.transform.PassContext(opt_level=3, config={"relay.codegen.records": path, **config}):
        return relay.build(PRODUCT, "llvm")


def loops(lib) -> str:
    (name,) = lib.kernels()
    return lib.inspect("loop", name)


def numbers(lib) -> np.ndarray:
    module = graph_executor.GraphModule(lib["default"](cpu()))
    rng = np.random.default_rng(0)
    module.run(x=rng.standard_normal((6, 20), dtype="float32"), y=rng.standard_normal((20, 40), dtype="float32"))
    return module.get_output(0).numpy()


def test_records_come_back_fastest_first(tmp_path):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    slow, wrong = record(schedule="b", us=3.0), record(schedule="c", status="wrong", us=0.0)
    assert store.add([wrong, slow, record(schedule="a")]) == 3
    assert RecordStore(store.path).find(kernel="kernel") == [record(schedule="a"), slow, wrong]
    store.add([record(schedule="b", us=0.5)])  # measured again
    assert [r.us for r in store.find(status="ok")] == [0.5, 1.0]


def test_the_better_ones_are_taken():
    assert record().better and not record(us=1.99).better
    assert not record(status="wrong").better and not record(schedule="").better


def test_merging_keeps_what_is_here(tmp_path):
    here, there = (RecordStore(tmp_path / name, create=True) for name in ("a", "b"))
    here.add([record(us=1.5)])
    there.add([record(us=1.0), record(threads=2)])
    assert here.merge(there) == 1
    assert {(r.threads, r.us) for r in here.find()} == {(1, 1.5), (2, 1.0)}


def test_writers_wait_for_each_other(tmp_path):
    path = tmp_path / "r.sqlite"

    def write(k: int) -> None:
        store = RecordStore(path, create=True)
        for n in range(10):
            store.add([record(schedule=f"{k}.{n}")])

    writers = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(RecordStore(path).find()) == 40


def test_a_file_is_made_at_once(tmp_path, monkeypatch):
    """Who opens it while another makes it is told of no other format."""
    path, real = tmp_path / "r.sqlite", sqlite3.connect
    told: list[str] = []

    class Making(sqlite3.Connection):
        def execute(self, sql, *values):
            found = super().execute(sql, *values)
            if sql.startswith("PRAGMA application_id ="):
                monkeypatch.setattr(sqlite3, "connect", real)
                with pytest.raises(RelayError) as caught:
                    RecordStore(path)
                told.append(caught.value.code)
            return found

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Making, **k))
    RecordStore(path, create=True).add([record()])
    assert told == ["records.foreign"] and RecordStore(path).find() == [record()]


def database(path, application: int, version: int) -> None:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE other (x)")
        base.execute(f"PRAGMA application_id = {application}")
        base.execute(f"PRAGMA user_version = {version}")


def test_files_that_are_no_records_are_refused(tmp_path):
    (tmp_path / "text").write_text("these are no records, and long enough to be read as a page" * 50)
    database(tmp_path / "foreign", 1, 1)
    database(tmp_path / "newer", 0x52656C61, 99)
    RecordStore(tmp_path / "cut", create=True).add([record(schedule=str(k)) for k in range(500)])
    whole = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    codes = {"text": "damaged", "foreign": "foreign", "newer": "version", "cut": "damaged", "none": "missing"}
    for name, code in codes.items():
        with pytest.raises(RelayError) as found:
            RecordStore(tmp_path / name).find()
        assert found.value.code == f"records.{code}", name
        with pytest.raises(RelayError):
            built(tmp_path / name)
    with pytest.raises(RelayError) as found:
        RecordStore(tmp_path / "no" / "folder", create=True)
    assert found.value.code == "records.unusable" and "folder" in found.value.help


def test_a_build_takes_the_schedule_of_a_record(tmp_path):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record()])
    tuned = built(store.path)
    assert "parallel i1 in 40" in loops(tuned)
    np.testing.assert_allclose(numbers(tuned), numbers(built("")), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("other", [{"us": 1.99}, {"cpu": "x"}, {"version": "old"}, {"threads": 77}, {"kernel": "k"}])
def test_records_of_something_else_are_not_taken(tmp_path, other):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record(**other)])
    assert loops(built(store.path)) == loops(built(""))


def test_a_schedule_that_cannot_be_taken_is_said_and_left(tmp_path):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record(schedule="split i0 7")])
    with pytest.warns(RecordsWarning, match="7 does not divide"):
        lib = built(store.path)
    assert loops(lib) == loops(built(""))


def test_a_schedule_of_the_program_that_is_refused_is_no_fault_of_records(tmp_path, recwarn):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record()])
    (name,) = built("").kernels()
    with pytest.raises(RelayError, match="7 does not divide"):
        built(store.path, **{"relay.codegen.schedules": {name: "split i0 7"}})
    assert not [w for w in recwarn if w.category is RecordsWarning]


WRITTEN = """kernel zero(x: in0 float32[120], y: in1 float32[800], z: out0 float32[240])
  parallel i in 240:
    z[i] = 0f
"""


@pytest.mark.parametrize("text", [WRITTEN, "import os", "split i0 2 as for if"])
def test_a_record_holds_steps_or_is_left(tmp_path, text):
    """Loops that are written out may compute anything: a file of records could change what programs give."""
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record(schedule=text)])
    with pytest.warns(RecordsWarning, match="the record of `.*matmul` is not used"):
        assert loops(built(store.path)) == loops(built(""))


@pytest.mark.parametrize("change", ["us = 'fast'", "schedule = x'00ff'", "threads = 'one'", "picked_us = x''"])
def test_texts_in_the_place_of_numbers_are_damage(tmp_path, change):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record()])
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute(f"UPDATE measured SET {change}")
    with pytest.raises(RelayError) as found:
        store.find()
    assert found.value.code == "records.damaged" and change.split()[0] in found.value.message


@pytest.mark.parametrize("what, words", [("text", "not a database"), ("table", "cannot use the records")])
def test_the_users_own_records_never_stop_a_build(tmp_path, monkeypatch, what, words):
    path = tmp_path / "r.sqlite"
    if what == "text":
        path.write_text("damaged" * 99)
    else:  # what SQLite says of it is no text then
        RecordStore(path, create=True)
        path.write_bytes(path.read_bytes().replace(b"tablemeasured", b"table\xd4easured"))
    monkeypatch.setenv("RELAYLAB_RECORDS", str(path))
    with pytest.warns(RecordsWarning, match=words):
        assert loops(relay.build(PRODUCT, "llvm")) == loops(built(""))


def test_what_is_chosen_in_the_program_goes_before_records(tmp_path):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    store.add([product_record()])
    assert "vectorized" not in loops(built(store.path, **{"relay.codegen.schedules": {"nn_matmul": "unroll k"}}))


def test_records_of_the_user_are_used_where_they_are(tmp_path, monkeypatch):
    RecordStore(tmp_path / "r.sqlite", create=True).add([product_record()])
    plain = loops(relay.build(PRODUCT, "llvm"))
    monkeypatch.setenv("RELAYLAB_RECORDS", str(tmp_path / "r.sqlite"))
    assert "parallel i1 in 40" in loops(relay.build(PRODUCT, "llvm")) != plain
    monkeypatch.setenv("RELAYLAB_RECORDS", str(tmp_path / "none.sqlite"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loops(relay.build(PRODUCT, "llvm")) == plain  # a place where nothing is yet is no error
