"""A running service for each engine and pytest worker."""

from tests.conformance.service_fixtures import postgres_service, sqlite_service

__all__ = ["postgres_service", "sqlite_service"]
