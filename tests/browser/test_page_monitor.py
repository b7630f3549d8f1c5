"""The browser of these tests notices what pages must not do, and says nothing of pages that behave."""

from playwright import async_api

from tests.browser import page_monitor


async def test_a_page_that_behaves_is_not_complained_about(
    visitor: async_api.Page, monitor: page_monitor.PageMonitor
) -> None:
    answer = await visitor.goto("/login")
    assert answer is not None
    assert answer.status == 200
    assert monitor.problems() == []


async def test_a_message_on_the_console_is_noticed(visitor: async_api.Page, monitor: page_monitor.PageMonitor) -> None:
    await visitor.goto("/login")
    monitor.expect("^console: oh no ")
    await visitor.evaluate("console.error('oh no')")
    assert len(monitor.seen("oh no")) == 1


async def test_an_exception_of_a_script_is_noticed(visitor: async_api.Page, monitor: page_monitor.PageMonitor) -> None:
    await visitor.goto("/login")
    monitor.expect("^exception: .*wrong")
    async with visitor.context.expect_event("weberror"):
        await visitor.evaluate("setTimeout(() => { throw new Error('wrong') })")
    assert len(monitor.seen("wrong")) == 1


async def test_a_request_to_somebody_else_is_noticed(
    visitor: async_api.Page, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect("127.0.0.1:9/")
    async with visitor.context.expect_event("requestfailed"):
        await visitor.set_content("<img src='http://127.0.0.1:9/pixel.gif'>")
    assert monitor.seen("^foreign request: GET http://127.0.0.1:9/pixel.gif$")


async def test_what_the_content_security_policy_refuses_is_noticed(
    visitor: async_api.Page, monitor: page_monitor.PageMonitor
) -> None:
    await visitor.goto("/login")
    monitor.expect("Content Security Policy")
    monitor.expect("127.0.0.1:9/")
    async with visitor.expect_console_message():
        await visitor.evaluate("fetch('http://127.0.0.1:9/').catch(() => null)")
    assert monitor.seen("Content Security Policy")
