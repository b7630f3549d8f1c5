"""Mail hosts belong to the provider that runs them, and only to one that has settings."""

import pytest

from postroad import config
from postroad.model.delivery import providers
from postroad.model.delivery.providers import RouteRule


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


# Rules.


RULES = providers.complete_routes(
    [
        RouteRule(upstreams=("postmark",), accounts=("acc_1",), sender_domains=("shop.example",)),
        RouteRule(upstreams=("direct", "ses"), providers=("google",), accounts=("acc_1", "acc_2")),
        RouteRule(upstreams=("ses",), sender_domains=("news.example",), pool="news"),
        RouteRule(tags=("promotion", "sale"), pool="promotions"),
    ],
    names=["relay", "ses", "postmark"],
)


@pytest.mark.parametrize(
    "account_id, sender_domain, provider, upstreams",
    [
        ("acc_1", "shop.example", None, ("postmark",)),
        ("acc_2", "shop.example", None, None),
        ("acc_2", "shop.example", "google", ("direct", "ses")),
        ("acc_2", "shop.example", "others", ("relay",)),
        ("acc_2", "news.example", "others", ("ses",)),
        ("acc_3", "news.example", None, ("ses",)),
        ("acc_3", "", None, ("relay",)),
    ],
)
def test_the_first_rule_that_matches_decides(
    account_id: str, sender_domain: str, provider: str | None, upstreams: tuple[str, ...] | None
) -> None:
    found = providers.choose_route(RULES, account_id=account_id, sender_domain=sender_domain, provider=provider)
    assert (found.upstreams if found else None) == upstreams


def test_without_rules_and_upstreams_mail_is_delivered_directly() -> None:
    rules = providers.complete_routes([], names=[])
    assert providers.choose_route(rules, account_id="acc_1", sender_domain="") == providers.ChosenRoute(
        ("direct",), "default"
    )


@pytest.mark.parametrize(
    "sender_domain, tag, chosen",
    [
        ("news.example", "", providers.ChosenRoute(("ses",), "news")),
        ("", "sale", providers.ChosenRoute(("relay",), "promotions")),
        ("", "other", providers.ChosenRoute(("relay",), "default")),
    ],
)
def test_what_a_rule_leaves_open_is_that_of_all_other_mail(
    sender_domain: str, tag: str, chosen: providers.ChosenRoute
) -> None:
    assert providers.choose_route(RULES, account_id="acc_3", sender_domain=sender_domain, tag=tag) == chosen


def test_only_sender_domains_and_tags_that_a_rule_names_make_a_difference() -> None:
    asked = providers.route_conditions(RULES)
    assert asked.of_message("shop.example", ("welcome",)) == ("shop.example", "")
    assert asked.of_message("blog.example", ("sale", "promotion")) == ("", "promotion")
    assert (asked.are_any, providers.route_conditions([RouteRule(upstreams=("ses",))]).are_any) == (True, False)
