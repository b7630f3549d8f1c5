"""axe finds what it should: a page without names for its fields is refused, a good one is not."""

from playwright import async_api

from tests.browser import axe

GOOD = "<html lang=en><title>A page</title><main><h1>A page</h1><label>Name <input></label></main></html>"
BAD = "<html lang=en><title>A page</title><main><h1>A page</h1><input><button></button></main></html>"


async def test_a_good_page_has_no_findings(visitor: async_api.Page) -> None:
    await visitor.set_content(GOOD)
    await axe.check(visitor)


async def test_a_field_without_a_name_is_found(visitor: async_api.Page) -> None:
    await visitor.set_content(BAD)
    findings = await axe.violations(visitor)
    assert [finding.split(": ")[1] for finding in findings] == ["button-name", "label", "target-size"]


async def test_text_with_too_little_contrast_is_found_by_the_colour_rules(visitor: async_api.Page) -> None:
    await visitor.set_content(GOOD.replace("<h1>", "<h1 style='color: #ddd; background: #fff'>"))
    findings = await axe.violations(visitor, rules=axe.ALL_RULES)
    assert [finding.split(": ")[1] for finding in findings] == ["color-contrast"]
    assert await axe.violations(visitor, rules=axe.COLOUR_RULES) == findings


async def test_targets_too_small_to_hit_and_landmarks_with_one_name_are_found(visitor: async_api.Page) -> None:
    small = "<nav style='font-size: 8px; line-height: 1'><button style='all: unset'>a</button><br>"
    small += "<button style='all: unset'>b</button></nav><nav>c</nav>"
    await visitor.set_content(GOOD.replace("<main>", f"{small}<main>"))
    findings = await axe.violations(visitor)
    assert {finding.split(": ")[1] for finding in findings} == {"landmark-unique", "target-size"}
    assert {finding.split(": ")[1] for finding in await axe.violations(visitor, rules=axe.WIDTH_RULES)} == {
        "target-size"
    }


async def test_it_works_under_the_strict_policy_of_our_own_pages(visitor: async_api.Page) -> None:
    await visitor.goto("/login")
    await visitor.evaluate("document.querySelector('main button').textContent = ''")
    assert [finding.split(": ")[1] for finding in await axe.violations(visitor)] == ["button-name"]
