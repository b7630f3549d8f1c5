"""The dialog that asks before a form is sent (pages/parts/dialogs.html), answered as a person does."""

from playwright import async_api


async def agree(page: async_api.Page, question: str) -> None:
    """Read the question, and press the button that says yes."""
    dialog = page.get_by_role("dialog", name=question)
    await async_api.expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await dialog.locator("button[value=yes]").click()
    await async_api.expect(dialog).to_be_hidden()
