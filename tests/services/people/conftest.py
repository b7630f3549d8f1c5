"""Tests of people may watch how often passwords are hashed."""

from tests.services.people.argon_watch import argon

__all__ = ["argon"]
