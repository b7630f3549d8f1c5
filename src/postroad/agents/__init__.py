"""Tools for AI agents over the Model Context Protocol (MCP), at `/mcp` and for `postroad mcp`."""
