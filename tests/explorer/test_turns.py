"""Questions whose work is stopped, and questions from several threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from relaylab import relay, study
from relaylab.explorer import Session
from relaylab.explorer.stopping import stop


def session(what: str) -> Session:
    return Session(study.explore(what))


def test_interrupted_work_is_an_answer_and_leaves_what_was():
    """As when somebody presses Stop: the edit is taken back, what is known stays, everything can be asked."""
    made = session("mlp")
    before, view, runs = made.ask("rows"), made.frames.views[-1], made.pipeline.runs
    told = []
    made.pipeline.doing = told.append

    @relay.transform.module_pass(opt_level=0)
    def Endless(mod, ctx):
        raise KeyboardInterrupt

    made.pipeline.insert(3, Endless)
    made.pipeline.toggle(3)
    made.refresh()
    past = made.ask("rows")
    assert made.reply({"id": 7, "what": "edit", "args": ["toggle", 3]}) == {"id": 7, "answer": {"error": "stopped"}}
    assert told[-1] == f"Endless, pass 4 of {len(past['rows'])}"
    assert made.ask("rows") == past and not made.pipeline.items[3].enabled
    made.pipeline.undo()
    made.pipeline.undo()
    made.refresh()
    assert [r["name"] for r in made.ask("rows")["rows"]] == [r["name"] for r in before["rows"]]
    assert made.pipeline.runs == runs, "what was known was not run again"
    assert [n.id for n in made.frames.views[-1].nodes] == [n.id for n in view.nodes]


def test_work_in_another_thread_is_stopped_by_its_key():
    """Kernels with subshells answer widgets beside the main thread, which alone gets interrupts."""
    made, began, answers = session("mlp"), threading.Event(), []

    @relay.transform.module_pass(opt_level=0)
    def Endless(mod, ctx):
        began.set()
        while True:
            time.sleep(0.001)

    made.pipeline.insert(3, Endless)
    made.pipeline.toggle(3)
    made.refresh()
    assert not stop(made.key), "there is no work"
    message = {"id": 1, "what": "edit", "args": ["toggle", 3]}
    thread = threading.Thread(target=lambda: answers.append(made.reply(message)), daemon=True)
    thread.start()
    assert began.wait(60) and stop(made.key)
    thread.join(60)
    assert answers == [{"id": 1, "answer": {"error": "stopped"}}] and not made.pipeline.items[3].enabled
    assert made.reply({"id": 2, "what": "rows", "args": []})["answer"]["title"] == "mlp"


def test_questions_that_come_in_two_threads_are_answered_one_after_the_other(monkeypatch):
    """Kernels with subshells answer the first messages of a widget between cells, later ones beside them."""
    made, inside, most = session("mlp"), [], []

    def slow(what, *args):
        inside.append(what)
        most.append(len(inside))
        time.sleep(0.05)
        inside.remove(what)
        return {"answered": what}

    monkeypatch.setattr(made, "ask", slow)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(made.reply, [{"id": k, "what": "rows"} for k in range(6)]))
    assert found == [{"id": k, "answer": {"answered": "rows"}} for k in range(6)]
    assert max(most) == 1
