"""The HTTP framework that the API and the dashboard share: route tables, request parsing, responses, request log."""
