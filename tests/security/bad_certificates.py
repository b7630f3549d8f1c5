"""Endpoints that cannot prove who they are: what they speak TLS with, each in another wrong way."""

import datetime as dt
import ssl
import warnings

import trustme

from tests.webhook_server import NAME, PUBLIC, server_context

OTHER_NAME = "other.example.org"


def expired(authority: trustme.CA) -> ssl.SSLContext:
    """It was theirs until some years ago."""
    return server_context(authority.issue_cert(NAME, PUBLIC, not_after=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)))


def self_signed(_: trustme.CA) -> ssl.SSLContext:
    """Nobody vouches for it."""
    itself, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with itself.cert_pem.tempfile() as certificate, itself.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    return context


def of_an_unknown_authority(_: trustme.CA) -> ssl.SSLContext:
    """Somebody vouches for it whom the service does not trust."""
    return server_context(trustme.CA().issue_cert(NAME, PUBLIC))


def for_another_host(authority: trustme.CA) -> ssl.SSLContext:
    """It is good, for somebody else."""
    return server_context(authority.issue_cert(OTHER_NAME, "127.0.0.9"))


def for_a_wildcard_of_the_parent(authority: trustme.CA) -> ssl.SSLContext:
    """A wildcard stands for one label, and never for an address."""
    return server_context(authority.issue_cert("*.org", f"*.{NAME}"))


def old_tls(authority: trustme.CA) -> ssl.SSLContext:
    """It speaks nothing newer than TLS 1.1."""
    context = server_context(authority.issue_cert(NAME, PUBLIC))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


ALL = (expired, self_signed, of_an_unknown_authority, for_another_host, for_a_wildcard_of_the_parent, old_tls)
