"""Editing and publishing public models in a browser: by keyboard, without script, two at once."""

from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from catalog.models import AuditEntry, ModelRevision, PublicModel
from dispatch.models import WorkingCopy
from tests.browser.conftest import Visit
from tests.models_world import BASE, SLUG, ModelsWorld

PRIORITY = "osprey-pro@exact:priority"
KESTREL = "kestrel-hd@exact:priority"


def field(page: Page, name: str = PRIORITY) -> str:
    return f'[id="{name}"]'


def kept(page: Page) -> None:
    """Until what was typed has its answer in place."""
    expect(page.locator("form[data-dirty]")).to_have_count(0)
    expect(page.locator(".htmx-request")).to_have_count(0)


def as_publisher(visitor: Visit, **values: object) -> Page:
    person = visitor("operator", **values)
    _also_publisher(str(values.get("name", "li.m")))
    return person.visit("/console/jobs/")


def _also_publisher(name: str) -> None:
    from django.contrib.auth.models import Group

    User.objects.get(username=name).groups.add(Group.objects.get_or_create(name="publisher")[0])


def test_e2_e3_the_wheel_changes_nothing_and_a_double_click_moves_one_row(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    page = visitor().visit(f"{BASE}edit/")
    page.focus(field(page))
    page.hover(field(page))
    page.mouse.wheel(0, 300)
    assert page.input_value(field(page)) == "700000"
    said = page.evaluate(
        """() => { window.heard = [];
        new MutationObserver(() => window.heard.push(document.querySelector('#announce').textContent))
          .observe(document.querySelector('#announce'), {childList: true}); }"""
    )
    assert said is None
    up = page.locator('[id="up-heron-v3@exact"]')
    up.dblclick()
    expect(page.locator("#announce")).to_contain_text("heron-v3 is now number")
    kept(page)
    expect(up).to_be_focused()
    assert page.evaluate("window.heard.length") == 1
    assert set(WorkingCopy.objects.get().typed) == {"heron-v3@exact:priority"}
    rows = page.locator("#tier-exact [data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")
    assert rows == ["kestrel-hd@exact", "osprey-pro@exact", "heron-v3@exact"]


def test_e1_a_bad_number_moves_focus_to_the_summary_whose_link_goes_to_the_field(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    person = visitor()
    page = person.visit(f"{BASE}edit/")
    page.fill(field(page), "1,5e6")
    page.click("#to-review")
    expect(page.locator("#summary")).to_be_focused()
    assert page.title().startswith("Error: ")
    page.click("#summary a")
    expect(page.locator(field(page))).to_be_focused()
    assert page.input_value(field(page)) == "1,5e6"
    person.beat_and_wait("/console/strips/")
    assert page.evaluate("document.activeElement.id") == PRIORITY, "a beat leaves the focus where it is"


def test_e13_what_is_typed_is_kept_while_it_is_typed_and_offered_again(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    person = visitor()
    page = person.visit(f"{BASE}edit/")
    page.fill(field(page), "950000")
    expect(page.locator("#changes")).to_have_text("1 unsaved change")
    kept(page)
    page.click("nav >> text=Jobs")
    page.wait_for_url("**/jobs/")
    page.go_back()
    page.wait_for_url("**/edit/")
    person.visit(BASE)
    expect(page.locator("#unsaved")).to_contain_text("You have 1 unsaved change")
    with page.expect_navigation():
        page.click("#unsaved a")
    assert page.input_value(field(page)) == "950000"
    page.route("**/keep/", lambda _route: None)  # the answer does not come
    page.locator(field(page)).press_sequentially("1")
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.accept()


def test_e5_two_operators_and_nothing_is_lost(visitor: Visit, models_world: ModelsWorld) -> None:
    first = visitor(name="li.m").visit(f"{BASE}edit/")
    first.fill(field(first), "950000")
    first.fill(field(first, KESTREL), "930000")
    first.click("#to-review")
    first.wait_for_url("**/review/")
    second = visitor(name="wang.l").visit(f"{BASE}edit/")
    second.fill(field(second, KESTREL), "920000")
    second.click("#to-review")
    second.fill("#note", "mine first")
    second.click("#save")
    second.wait_for_url("**/publish/")
    first.fill("#note", "mine")
    first.click("#save")
    expect(first.locator("h1")).to_have_text(f"Two versions of {SLUG}")
    expect(first.locator(".clashes")).to_contain_text("920,000")
    expect(first.locator(".clashes")).to_contain_text("930,000")
    first.check("input[value=mine]")
    first.click("#merge")
    first.wait_for_url("**/review/")
    stored = dict(PublicModel.objects.get(slug=SLUG).bindings.values_list("supply__slug", "priority"))
    assert (stored["kestrel-hd"], stored["osprey-pro"]) == (920_000, 700_000)


def test_e11_a_double_click_on_save_and_on_publish_has_one_effect(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    page = as_publisher(visitor)
    models_world.edit_as(User.objects.get(username="li.m"))
    page.goto(page.url.replace("/console/jobs/", f"{BASE}review/"))
    page.fill("#note", "twice")
    page.dblclick("#save")
    page.wait_for_url("**/publish/")
    page.dblclick("#publish")
    page.wait_for_url(f"**{BASE}")
    assert ModelRevision.objects.filter(public_model__slug=SLUG).count() == 3
    assert AuditEntry.objects.filter(actor="li.m", action="publish model").count() == 1


def test_p5_without_script_the_whole_way_from_edit_to_publish_works(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    page = as_publisher(visitor, script=False)
    page.goto(page.url.replace("/console/jobs/", f"{BASE}edit/"))
    with page.expect_navigation():
        page.click('[id="up-osprey-pro@exact"]')
    expect(page.locator('[id="up-osprey-pro@exact"]')).to_be_focused()
    page.click("#to-review")
    page.click("text=Show the effect")
    expect(page.locator("#effect")).to_contain_text("No selection was recorded")
    page.fill("#note", "without script")
    page.click("#save")
    page.click("#publish")
    expect(page.locator(".messages")).to_contain_text("Published revision 3 at")


def test_the_effect_comes_after_the_page(visitor: Visit, models_world: ModelsWorld) -> None:
    person = visitor()
    models_world.edit_as(User.objects.get(username="li.m"))
    held: list[Route] = []
    person.page.route("**/effect/", lambda route: held.append(route))
    with person.page.expect_request("**/effect/"):
        page = person.visit(f"{BASE}review/")
    expect(page.locator("#effect")).to_contain_text("Routing the recorded selections again…")
    expect(page.locator("#price")).to_contain_text("Saving takes vid-hd-5s out of production.")
    held[0].continue_()
    expect(page.locator("#effect")).to_contain_text("there is nothing to compare with")
