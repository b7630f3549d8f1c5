"""The tools are tested through the application and the SDK's own client."""

from extensions.mcp.tests.agent_server import server

__all__ = ["server"]
