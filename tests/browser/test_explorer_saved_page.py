"""A saved page by itself: any two stages, machine code, its address, phones, paper, two fingers."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from support.explorer import press, saved
from support.stages import MLP, step

from relaylab import relay, study, viz
from relaylab.lab import saved_page
from relaylab.lab.explorer import PassExplorer
from relaylab.explorer.session import Session

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SVG = "{http://www.w3.org/2000/svg}"
ASK = "([what, ...args]) => window.relaylab.host.ask(what, args)"


def asked(session, *question):
    """The session's answer as it comes to a page."""
    return json.loads(json.dumps(session.ask(*question)))


@pytest.fixture(scope="module")
def session():
    return Session(study.explore("mlp"))


@pytest.fixture(scope="module")
def path(session, tmp_path_factory):
    return saved_page.write(session, tmp_path_factory.mktemp("saved") / "mlp.html")


@pytest.fixture
def opened(page, path):
    def go(fragment: str = ""):
        page.route("http*://**", lambda route: route.abort())
        page.goto("about:blank")
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector(".rl-explorer[data-shown]")
        return page

    return go


def shown(page, stages: str) -> None:
    page.wait_for_function(f"() => document.querySelector('.rl-explorer').dataset.shown === '{stages}'")


# -- answers ----------------------------------------------------------------------------------------


def test_any_two_stages_give_the_pictures_and_texts_of_the_live_explorer(opened, session):
    page = opened()
    for a, b in combinations([0, *session.frames.changing()], 2):
        difference = viz.Difference(session.frames.views[a], session.frames.views[b])
        left, right = ({p.id: p.role for p in (*side.nodes, *side.groups)} for side in difference.sides)
        merged, both = (page.evaluate(ASK, ["picture", a, b, style, ""]) for style in ("merged", "both"))
        assert merged["roles"] == both["roles"] == difference.counts and "note" not in merged
        assert [roles_in(s) for s in both["scenes"]] == [left, right]
        assert roles_in(merged["scenes"][0]) == {
            p.id: p.role for p in (*difference.merged.nodes, *difference.merged.groups)
        }
        changed = sum(1 for s in both["scenes"] for f in s["figures"] if f["kind"] == "edge" and f["role"])
        assert changed == difference.changed_edges == both["edges"]
        assert page.evaluate(ASK, ["text", a, b]) == asked(session, "text", a, b)
    assert page.errors == []


def roles_in(scene):
    return {f["id"]: f["role"] for f in scene["figures"] if f["kind"] in ("node", "group")}


def test_every_part_tells_what_the_live_explorer_tells(opened, session):
    page = opened()
    for stop in (0, session.frames.changing()[-1]):
        view = session.frames.views[stop]
        for part in (*view.nodes, *view.groups):
            told, known = page.evaluate(ASK, ["node", stop, part.id]), asked(session, "node", stop, part.id)
            assert all(
                told[key] == known[key]
                for key in ("title", "attrs", "operands", "values", "doc", "story", "group", "kernel")
            ), part.id
            code = page.evaluate(ASK, ["kernel", stop, part.id])
            assert "error" in code or [row[0] for row in code["asm"]] == [
                row[0] for row in asked(session, "kernel", stop, part.id)["asm"]
            ]


def test_a_picture_is_drawn_as_it_was_laid_out(opened, session):
    """What the page draws from numbers equals what the plotter would write, to a fifth of a point."""
    import re

    from relaylab.viz.draw.draw import draw
    from relaylab.viz.write.html import scene_data

    page = opened()
    drawn = {
        f["id"]: f
        for f in scene_data(draw(session.frames.views[0], saved_page.DRAWING))["figures"]
        if f["kind"] != "edge"
    }
    found = {
        f["id"]: f
        for f in page.evaluate(ASK, ["picture", 0, 0, "merged", ""])["scenes"][0]["figures"]
        if f["kind"] != "edge"
    }
    assert found.keys() == drawn.keys()
    for name, figure in drawn.items():
        for ours, theirs in zip(found[name]["shapes"], figure["shapes"], strict=True):
            numbers = [
                [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", " ".join(map(str, shape[1:3])))]
                for shape in (ours, theirs)
            ]
            assert (
                ours[0] == theirs[0]
                and ours[-2:] == theirs[-2:]
                and all(abs(x - y) < 0.21 for x, y in zip(*numbers, strict=True))
            )


def test_counterparts_follow_what_nodes_were_made_from(opened, session):
    page = opened()
    last = session.frames.changing()[-1]
    for node in session.frames.views[0].nodes:
        live = asked(session, "counterparts", 0, node.id, [last])["ids"][str(last)]
        here = page.evaluate(ASK, ["counterparts", 0, node.id, [last]])["ids"][str(last)]
        assert set(live) & set(here) or not live, (node.id, live, here)


# -- looking ----------------------------------------------------------------------------------------


def test_the_code_view_links_lines_with_nodes(opened, shot):
    page = opened("#stage=FuseOps&node=main/nn.dense&view=code")
    page.wait_for_selector(".rl-kernel .rl-ins")
    assert page.locator(".rl-column h3").all_inner_texts() == ["RELAY AND LOOPS", "LLVM IR", "ASSEMBLY"]
    page.locator(".rl-kernel-bar button").first.hover()
    assert page.locator(".rl-column .rl-ins.rl-lit").count() > 5
    assert page.locator(".rl-explorer .rl-view .rl-glow").count() == 1
    shot("saved_code")
    assert page.errors == []


def test_a_page_begins_where_its_explorer_stood(page, tmp_path):
    explorer = PassExplorer(
        study.explore("mlp"), selected="main/nn.dense.2", compare="both", views={"early": {"after": 0}}
    )
    explorer.go(MLP["FuseOps"], 0)
    page.goto(explorer.save(tmp_path / "x.html").as_uri())
    shown(page, f"0:{MLP['FuseOps']}")
    page.wait_for_selector(".node.selected")
    press(page, "Views")
    assert page.locator(".rl-view-name").all_inner_texts() == ["early"] and page.locator(".rl-two").count() == 1


def test_the_keys_work_at_once(opened):
    page = opened(f"#stage={MLP.first}")
    second = MLP.changing[1]
    keys = {"ArrowRight": step(second), "Shift+ArrowLeft": step(second - 1), "Home": "0:0", "End": f"0:{MLP.last}"}
    for key, stages in keys.items():
        page.keyboard.press(key)
        shown(page, stages)
    page.keyboard.press("/")
    page.keyboard.type("op:nn.dense")
    page.wait_for_function("() => parseInt(document.querySelector('.rl-hits').textContent) > 0")
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.selected")
    assert "node=main/nn.dense" in page.evaluate("location.hash")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert "fold" in page.locator(".rl-panel").inner_text() or "collapse" in page.locator(".rl-panel").inner_text()
    assert page.errors == []


def test_slides_are_large_and_show_no_pass_before_its_turn(opened, artifacts):
    page = opened()
    first = page.locator(".rl-stage svg text").first
    before = first.bounding_box()["height"]
    page.keyboard.press("Home")
    shown(page, "0:0")
    page.keyboard.press("p")
    page.wait_for_function("() => document.fullscreenElement?.matches('.rl-slides')")
    assert not any(page.locator(part).first.is_visible() for part in (".rl-bar", ".rl-timeline", ".rl-left"))
    for key, stages in (
        ("End", "0:0"),  # only what has been shown
        ("PageDown", step(MLP.changing[0])),
        ("Shift+ArrowRight", step(MLP.changing[1])),  # quiet passes are no slides
        ("PageUp", step(MLP.changing[0])),
        ("Home", "0:0"),
        ("End", step(MLP.changing[1])),
    ):
        page.keyboard.press(key)
        shown(page, stages)
    page.screenshot(path=artifacts / "slide.png")
    assert first.bounding_box()["height"] > 1.2 * before
    texts = page.locator(".rl-stage svg text")
    assert min(texts.nth(k).bounding_box()["height"] for k in range(texts.count())) > 15
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.fullscreenElement && !document.querySelector('.rl-slides')")
    assert page.errors == []


def test_the_picture_is_saved_as_it_is_seen(opened, session, artifacts):
    page = opened("#stage=FuseOps&compare=both")
    page.wait_for_selector(".rl-two")
    root = ET.fromstring(text := saved(page, "svg"))
    (artifacts / "saved_both.svg").write_bytes(text)
    places = page.evaluate("document.querySelector('.rl-explorer').dataset.shown").split(":")
    before, after = (session.frames.views[int(k)] for k in places)
    found = [{e.get("data-id") for e in side.iter() if e.get("class") == "node"} for side in root.findall(f"{SVG}g")]
    assert found == [{n.id for n in before.nodes}, {n.id for n in after.nodes}]
    assert ".box" in root.findtext(f"{SVG}style") and ".rl-bar" not in root.findtext(f"{SVG}style")
    width, height = (float(root.get(name)) for name in ("width", "height"))
    page.keyboard.press("s")
    page.locator(".rl-select").select_option("MACs")
    page.wait_for_selector(".rl-heat rect")
    made = saved(page, "svg")
    assert ET.fromstring(made).find(f"{SVG}g/{SVG}g[@class='rl-heat']/{SVG}g") is not None
    data = saved(page, "png")
    (artifacts / "saved.png").write_bytes(data)
    one = ET.fromstring(made)
    size = [2 * float(one.get(name)) for name in ("width", "height")]
    assert data.startswith(b"\x89PNG") and [int.from_bytes(data[k : k + 4]) for k in (16, 20)] == [int(v) for v in size]
    assert width > size[0] / 2 and height > 0 and page.errors == []


def test_folding_closes_groups_in_their_places(opened, session):
    page = opened("#stage=FuseOps")
    kernels = sum(g.kind == "primitive" for g in session.frames.views[-1].groups)
    page.locator(".rl-explorer").focus()
    page.keyboard.press("C")
    page.wait_for_function("() => document.querySelector('.rl-legend').innerText.includes('folded')")
    assert page.locator(".rl-explorer .rl-view .node", has_text="inside").count() == kernels
    page.keyboard.press("e")
    page.wait_for_function("() => !document.querySelector('.rl-legend').innerText.includes('folded')")
    assert page.locator(".rl-error").count() == 0
    a_node_with_what_is_near_it(page, session)


def a_node_with_what_is_near_it(page, session) -> None:
    """F shows what the kernel shows: the same nodes, the rim with the number of neighbours left out; Esc goes back."""
    stage, name = session.frames.changing()[0], "main/nn.relu"
    page.evaluate(f"() => {{ window.relaylab.go({stage - 1}, {stage}); window.relaylab.pick('{name}') }}")
    shown(page, f"{stage - 1}:{stage}")
    drawn = "() => window.relaylab.parts.stage.canvases[0].scene.figures.filter(f => f.kind === 'node')"
    for keys, hops in (("F", 2), ("+", 3), ("---", 0)):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_function(f"() => document.querySelector('.rl-legend').innerText.includes('within {hops} edge')")
        (scene,) = session.ask("picture", stage - 1, stage, "merged", f"⌖{hops} {name}")["scenes"]
        nodes = {f["id"]: f["shapes"] for f in page.evaluate(drawn)}
        assert nodes.keys() == {f["id"] for f in scene["figures"] if f["kind"] == "node"}
    words = [shape[3] for shape in nodes[name] if shape[0] == "t"]
    assert words[-2:] == ["… 1 more input", "… 1 more user"]
    page.wait_for_timeout(350)  # what follows sooner is one move
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.rl-legend').innerText.includes('within')")
    assert page.evaluate("() => window.relaylab.host.get('selected')") == name
    page.keyboard.press("Control+z")
    page.wait_for_function("() => document.querySelector('.rl-legend').innerText.includes('within 0 edges')")
    page.locator(".rl-legend .rl-link", has_text="all").click()
    page.wait_for_function("() => !document.querySelector('.rl-legend').innerText.includes('within')")
    assert page.errors == []


def test_what_is_not_in_the_page_is_said(page, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_page, "MOST_DRAWN", 0)
    monkeypatch.setattr(saved_page, "MOST_PRINTED", 0)
    x = relay.var("x", shape=(1, 4, 8, 8))
    norms = [relay.var(name, shape=(4,)) for name in ("gamma", "beta", "mean", "var")]
    mod = relay.IRModule.from_expr(relay.Function([x, *norms], relay.nn.relu(relay.nn.batch_norm(x, *norms)[0])))
    found = study.explore(study.Program("norm", mod), passes=["SimplifyInference", "FuseOps"])
    page.goto(
        saved_page.save(found, tmp_path / "small.html", ["SimplifyInference", "FuseOps"]).as_uri()
        + "#stage=2&from=0&view=both"
    )
    page.wait_for_selector(".rl-textpane .rl-error")
    assert "too long" in page.locator(".rl-textpane").inner_text()
    assert "side by side" in page.locator(".rl-legend").inner_text() and page.locator(".rl-two .rl-view").count() == 2
    before = page.locator(".rl-two .rl-view >> nth=0 >> .node text").all_text_contents()
    assert [text for text in before if "batch_norm" in text] == ["– nn.batch_norm", "± nn.batch_norm.0"]
    assert page.errors == []


# -- the address ------------------------------------------------------------------------------------


def test_an_address_opens_what_it_names_and_follows_every_step(opened):
    page = opened(f"#stage={MLP.first}&from=0&node=main/nn.dense.2&compare=both")
    shown(page, f"0:{MLP.first}")
    page.wait_for_selector(".node.selected")
    assert page.locator(".rl-panel h2").inner_text() == "nn.dense" and page.locator(".rl-two").count() == 1
    page.locator(".rl-explorer").focus()
    page.keyboard.press("s")
    page.keyboard.press("End")
    page.wait_for_selector(".rl-graphs:not(.rl-two)")
    assert page.evaluate("location.hash") == f"#stage={MLP.last}&from=0&node=main/nn.dense.2"
    page.evaluate(f"location.hash = '#stage={MLP.first}&view=text'")
    shown(page, step(MLP.first))
    page.wait_for_selector(".rl-line.rl-plus")
    assert page.locator(".rl-note").count() == 0 and page.errors == []


def test_an_address_leaves_out_what_is_as_the_page_began(page, tmp_path):
    path = PassExplorer(study.explore("mlp"), pane="text", selected="main/nn.dense").save(tmp_path / "x.html")
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown]")
    page.evaluate("() => { relaylab.choose('pane', 'graph'); relaylab.pick('') }")
    page.wait_for_function(f"() => location.hash === '#stage={MLP.first}&node=&view=graph'")
    state = "() => ['pane', 'selected'].map((name) => relaylab.host.get(name))"
    page.reload()
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    assert page.evaluate(state) == ["graph", ""]
    page.evaluate(f"() => location.hash = '#stage={MLP.last}'")
    page.wait_for_selector(".rl-line")
    assert page.evaluate(state) == ["text", "main/nn.dense"]
    assert page.locator(".rl-note").count() == 0 and page.errors == []


def test_an_address_carries_any_name(page, tmp_path):
    name = """%a&b=c#d"e'<img src=x onerror="window.hurt=1">(é)"""
    x = relay.var(name, shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    path = saved_page.save(
        study.explore(study.Program("odd", mod), passes=["FuseOps"]), tmp_path / "odd.html", ["FuseOps"]
    )
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown]")
    page.locator(".rl-view .node", has_text="onerror").first.click()
    page.wait_for_selector(".rl-panel h2")
    chosen, link = page.evaluate("() => [window.relaylab.host.get('selected'), location.href]")
    assert name in chosen and not set(link) & set("\"'<>() é")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".node.selected")
    assert (
        page.evaluate("() => window.relaylab.host.get('selected')") == chosen and page.locator(".rl-note").count() == 0
    )
    assert page.evaluate("() => window.hurt") is None and page.errors == []


@pytest.mark.parametrize(
    "fragment, words",
    [
        ("#stage=99", "there is no stage 99"),
        ("#stage=-1", "there is no stage -1"),
        ("#stage=1e1&from=0", "there is no stage 1e1"),
        ("#node=nobody", "there is no node nobody"),
        ("#stage=%E0%A4%A", "there is no stage %E0%A4%A"),
        ("#compare=sideways", "compare is merged or both, not sideways"),
        ("#view=branches", "not branches"),
        ("#stages=3", "stages means nothing here"),
        ("#node=%3Cimg%20src%3Dx%20onerror%3D%22window.hurt%3D1%22%3E", '<img src=x onerror="window.hurt=1">'),
        ("#__proto__=1&constructor=2", "__proto__ means nothing here"),
    ],
)
def test_nonsense_in_an_address_is_left_out_and_said(opened, fragment, words):
    page = opened(fragment)
    assert words in page.locator(".rl-note").inner_text()
    assert page.locator(".rl-explorer .rl-view .node").count() > 5 and page.locator(".rl-explorer").get_attribute(
        "data-shown"
    ) == step(MLP.first)
    assert page.evaluate("() => window.hurt") is None and page.locator(".rl-note img").count() == 0
    page.locator(".rl-note button").click()
    assert page.locator(".rl-note").count() == 0 and page.errors == []


# -- phones, paper, fingers -------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["graph", "text", "both", "code", "several", "heat"])
def test_a_phone_needs_no_scrolling_to_the_side(opened, page, view, artifacts):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(f"#stage={MLP.last}&from=0&node=main/nn.dense&view={view}")
    page.wait_for_timeout(200)
    page.screenshot(path=artifacts / f"phone_{view}.png")
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 390
    stage = page.locator(".rl-stage").bounding_box()
    assert stage["width"] > 350 and stage["height"] > 300
    assert page.locator(".rl-rail").bounding_box()["y"] >= stage["y"] + stage["height"] - 1


ENGLISH = """() => {
  const found = [], own = "svg, script, style, noscript, .rl-code, .rl-ins, .rl-doc, .rl-line, [translate=no]";
  const look = (node) => {
    if (node.nodeType === 3) return found.push(node.data);
    if (node.nodeType !== 1 || node.matches(own)) return;
    for (const name of ["title", "placeholder", "aria-label"]) found.push(node.getAttribute(name) ?? "");
    node.childNodes.forEach(look);
  };
  look(document.body);
  const words = (text) => text.replace(/@?\\S+ (op|kind|role):.*/, ""); // queries are the same in all languages
  return found.filter((text) => !/[\u4e00-\u9fff]/.test(text) && /[a-z]{2,} [a-z]{2,}/.test(words(text)));
}"""
"""What people read that has no Chinese in it and two English words in a row."""


def test_a_page_speaks_chinese(session, page, tmp_path, artifacts):
    path = saved_page.write(session, tmp_path / "zh.html", language="zh")
    page.goto(path.as_uri())
    for width in (1440, 370):
        page.set_viewport_size({"width": width, "height": 900})
        for fragment in (
            "#stage=FuseOps",
            "#stage=FuseOps&node=main/nn.dense&view=code",
            "#view=several",
            "#view=heat",
        ):
            page.evaluate("to => (location.hash = to)", fragment)
            page.wait_for_timeout(250)
            assert page.evaluate(ENGLISH) == [], fragment
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    press(page, "?")
    page.wait_for_selector(".rl-panel h2", state="attached")
    assert page.locator(".rl-panel h2").text_content() == "快捷键" and page.evaluate(ENGLISH) == []
    page.screenshot(path=artifacts / "zh_370.png")
    assert page.evaluate("document.documentElement.lang") == "zh-CN" and page.errors == []
    assert page.locator(".rl-name").first.inner_text() in [item.name for item in session.pipeline.items]


def test_paper_shows_the_picture_in_strips_and_the_node(opened, page, artifacts):
    opened(f"#stage={MLP.last}&from=0&node=main/nn.dense")
    page.wait_for_selector(".rl-panel h2")
    nodes = page.evaluate(
        "() => window.relaylab.parts.stage.canvases[0].scene.figures.filter((f) => f.kind === 'node').map((f) => f.id)"
    )
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("#relaylab").is_visible()
    assert (
        page.locator(".rl-paper h1").inner_text() == "mlp"
        and "nn.dense" in page.locator(".rl-paper .rl-panel").inner_text()
    )
    assert set(nodes) == set(
        page.evaluate("() => [...document.querySelectorAll('.rl-paper .node')].map((n) => n.dataset.id)")
    )
    box = page.evaluate("() => getComputedStyle(document.querySelector('.rl-paper .node .box')).fill")
    assert box != "rgb(0, 0, 0)" and page.locator(".rl-paper svg").first.bounding_box()["width"] <= 702
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".rl-paper").count() == 0
    (artifacts / "paper.pdf").write_bytes(page.pdf(format="A4"))


def test_strips_and_columns_are_closed_and_resized(opened, page):
    """The strips of *Side by side* have a border that keys and pointers move, and a cross; so have columns of code."""
    wide = "(what) => [...document.querySelectorAll(what)].map((e) => e.offsetWidth)"
    opened(f"#stage={MLP['LabelOps']}&compare=both")
    page.wait_for_selector(".rl-graphs.rl-two")
    left, _, right = page.evaluate(wide, ".rl-graphs > *")
    assert abs(left - right) <= 1
    page.locator(".rl-graphs > .rl-sash").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(wide, ".rl-graphs > *")[0] == pytest.approx(left + 80, abs=2)
    page.locator(".rl-graphs .rl-drop").first.click()
    page.wait_for_selector(".rl-graphs:not(.rl-two)")
    assert "compare=both" not in page.url
    opened(f"#stage={MLP['LabelOps']}&node=main/nn.dense&view=code")
    page.wait_for_selector(".rl-columns > .rl-sash")
    first = page.evaluate(wide, ".rl-columns > *")[0]
    box = page.locator(".rl-columns > .rl-sash").first.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 62, box["y"] + 50)
    page.mouse.up()
    assert page.evaluate(wide, ".rl-columns > *")[0] == pytest.approx(first + 60, abs=20) and page.errors == []


def test_two_fingers_zoom(opened, page):
    opened()
    zoom = page.evaluate("""() => {
        const canvas = window.relaylab.parts.stage.canvases[0];
        const box = canvas.svg.getBoundingClientRect(), before = canvas.k;
        const send = (target, type, id, x) => {
            const at = { clientX: box.left + x, clientY: box.top + 200 };
            target.dispatchEvent(new PointerEvent(type, { pointerId: id, ...at, bubbles: true }));
        };
        send(canvas.svg, "pointerdown", 1, 200); send(canvas.svg, "pointerdown", 2, 300);
        send(window, "pointermove", 2, 400); send(window, "pointerup", 2, 400);
        send(window, "pointermove", 1, 900); send(window, "pointerup", 1, 900);
        const after = canvas.k;
        send(canvas.svg, "pointerdown", 3, 100);
        const x = canvas.x; send(window, "pointermove", 3, 150); send(window, "pointerup", 3, 150);
        return [after / before, canvas.x - x];
    }""")
    assert zoom == pytest.approx([2, 50]) and page.errors == []
