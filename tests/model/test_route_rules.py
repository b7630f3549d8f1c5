"""Rules: the first that matches decides, and the provider is only asked for where it makes a difference."""

import pytest

from postroad.model.delivery import providers
from postroad.model.delivery.providers import RouteRule

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
