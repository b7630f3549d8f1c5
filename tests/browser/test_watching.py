"""The browser of these tests notices what pages must not do, and says nothing of pages that behave."""

from playwright import async_api

from tests.browser import houses, watching
from tests.browser.conftest import Opener


async def test_a_page_that_behaves_is_not_complained_about(visitor: async_api.Page, watch: watching.Watch) -> None:
    answer = await visitor.goto("/login")
    assert answer is not None
    assert answer.status == 200
    assert watch.complaints() == []


async def test_a_message_on_the_console_is_noticed(visitor: async_api.Page, watch: watching.Watch) -> None:
    await visitor.goto("/login")
    watch.expect("^console: oh no ")
    await visitor.evaluate("console.error('oh no')")
    assert len(watch.seen("oh no")) == 1


async def test_an_exception_of_a_script_is_noticed(visitor: async_api.Page, watch: watching.Watch) -> None:
    await visitor.goto("/login")
    watch.expect("^exception: .*wrong")
    async with visitor.context.expect_event("weberror"):
        await visitor.evaluate("setTimeout(() => { throw new Error('wrong') })")
    assert len(watch.seen("wrong")) == 1


async def test_a_request_to_somebody_else_is_noticed(visitor: async_api.Page, watch: watching.Watch) -> None:
    watch.expect("127.0.0.1:9/")
    async with visitor.context.expect_event("requestfailed"):
        await visitor.set_content("<img src='http://127.0.0.1:9/pixel.gif'>")
    assert watch.seen("^foreign request: GET http://127.0.0.1:9/pixel.gif$")


async def test_what_the_content_security_policy_refuses_is_noticed(
    visitor: async_api.Page, watch: watching.Watch
) -> None:
    await visitor.goto("/login")
    watch.expect("Content Security Policy")
    watch.expect("127.0.0.1:9/")
    async with visitor.expect_console_message():
        await visitor.evaluate("fetch('http://127.0.0.1:9/').catch(() => null)")
    assert watch.seen("Content Security Policy")


async def test_visitors_share_no_cookies(open_page: Opener, house: houses.House) -> None:
    one, other = await open_page(), await open_page()
    await one.context.add_cookies([{"name": "mine", "value": "1", "url": house.base_url}])
    assert await other.context.cookies() == []


async def test_an_account_of_a_test_is_its_own(house: houses.House) -> None:
    one, _ = await house.new_account()
    other, _ = await house.new_account()
    assert one.id != other.id
