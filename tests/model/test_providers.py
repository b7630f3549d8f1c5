"""Mail hosts belong to the provider that runs them, and only to one that has settings."""

import pytest

from postroad import config
from postroad.model.delivery import providers


def test_every_provider_has_settings() -> None:
    assert config.Providers.__struct_fields__ == providers.PROVIDERS
    assert {*providers.SUFFIXES.values(), providers.OTHERS} == set(providers.PROVIDERS)


@pytest.mark.parametrize(
    "host, provider",
    [
        ("gmail-smtp-in.l.google.com", "google"),
        ("aspmx2.googlemail.com", "google"),
        ("smtp.google.com", "google"),
        ("example-org.mail.protection.outlook.com", "microsoft"),
        ("hotmail-com.olc.protection.outlook.com", "microsoft"),
        ("example-org.a-v1.mx.microsoft", "microsoft"),
        ("mta5.am0.yahoodns.net", "yahoo"),
        ("mx-aol.mail.gm0.yahoodns.net", "yahoo"),
        ("mx01.mail.icloud.com", "apple"),
        ("x.psmtp.com", "google"),
        ("x.outlook.cn", "microsoft"),
        ("x.hotmail.com", "microsoft"),
        ("x.office365.us", "microsoft"),
        ("x.yahoo.com", "yahoo"),
        ("x.apple.com", "apple"),
        ("x.me.com", "apple"),
        ("mx.example.org", "others"),
        ("notgoogle.com", "others"),
        ("google.com.evil.example", "others"),
        ("com", "others"),
        ("", "others"),
    ],
)
def test_the_end_of_a_name_decides_the_provider(host: str, provider: str) -> None:
    assert providers.of_host(host) == provider


def test_hosts_of_one_provider_belong_to_it() -> None:
    assert providers.of_hosts(["aspmx.l.google.com", "alt1.aspmx.l.google.com"]) == "google"


@pytest.mark.parametrize("names", [["aspmx.l.google.com", "mx.example.org"], ["a.google.com", "b.outlook.com"], []])
def test_hosts_of_several_belong_to_none(names: list[str]) -> None:
    assert providers.of_hosts(names) == "others"


@pytest.mark.parametrize(
    "provider_queue, label",
    [("google", "google"), ("upstream:ses", "upstream:ses"), ("mx.example.net", "others"), ("", "none")],
)
def test_provider_queues_of_unlisted_hosts_share_a_label(provider_queue: str, label: str) -> None:
    assert providers.label_of(provider_queue) == label


@pytest.mark.parametrize(
    "provider_queue, domain, recorded",
    [
        ("upstream:dev_simulator", "gmail.com", "google"),
        ("upstream:dev_simulator", "hotmail.com", "microsoft"),
        ("upstream:dev_simulator", "yahoo.com", "yahoo"),
        ("upstream:dev_simulator", "icloud.com", "apple"),
        ("upstream:dev_simulator", "example.net", "others"),
        ("upstream:ses", "gmail.com", "upstream:ses"),
        ("google", "example.net", "google"),
        ("", "gmail.com", ""),
    ],
)
def test_behind_the_simulator_of_dev_the_domain_names_the_provider(
    provider_queue: str, domain: str, recorded: str
) -> None:
    assert providers.attributed_queue(provider_queue, domain) == recorded


def test_provider_queues_have_names_for_people() -> None:
    named = [providers.title_of(one) for one in ("google", "others", "upstream:ses", "mx.example.org")]
    assert named == ["Google", "All others", "Upstream ses", "mx.example.org"]
