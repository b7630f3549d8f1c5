"""`postroad domain`, on both engines."""

from postroad.services import accounts, context, domains
from tests.cli.operating import Installation


def test_a_domain_is_registered_and_proven_only_when_the_operator_says_so(installation: Installation) -> None:
    proven = installation.json("domain", "add", "Example.ORG", "--verified")["domain"]
    claimed = installation.json("domain", "add", "Example.NET")["domain"]
    assert (proven["name"], proven["verified"]) == ("example.org", True)
    assert (claimed["name"], claimed["verified"]) == ("example.net", False)
    assert installation.json("domain", "list")["domains"] == [proven, claimed]


def test_people_see_whether_a_domain_is_verified(installation: Installation) -> None:
    assert installation.text("domain", "add", "a.example").startswith("a.example is registered, not verified yet: dom_")
    assert installation.text("domain", "add", "b.example", "--verified").startswith(
        "b.example is registered, verified: dom_"
    )
    selector = installation.json("domain", "show", "a.example")["domain"]["dkim"]["selector"]
    assert installation.text("domain", "list").splitlines()[1].split()[1:] == ["a.example", "-", selector]


def test_the_record_to_publish_is_shown_for_people_and_for_programs(installation: Installation) -> None:
    added = installation.json("domain", "add", "Bücher.example")["domain"]
    record = added["dkim"]
    assert record["name"] == f"{record['selector']}._domainkey.xn--bcher-kva.example"
    assert record["type"] == "TXT"
    assert record["value"].startswith("v=DKIM1; k=rsa; p=")
    assert installation.json("domain", "show", "bücher.EXAMPLE")["domain"] == added
    assert installation.json("domain", "list")["domains"] == [added]
    line = installation.text("domain", "show", "bücher.example").splitlines()[-1]
    assert line.startswith(f'{record["name"]}. IN TXT ( "v=DKIM1; ')
    assert "".join(line.split('"')[1::2]) == record["value"]


def test_a_domain_from_before_there_were_keys_gets_one_when_it_is_shown(installation: Installation) -> None:
    async def register(ctx: context.Context) -> None:
        (account,) = await accounts.page(ctx, "", 1)
        await domains.add(ctx, account.id, "old.example", verified=True)

    installation.ask(register)
    assert installation.json("domain", "list")["domains"][0]["dkim"] is None
    assert installation.text("domain", "list").splitlines()[1].endswith("  -")
    shown = installation.json("domain", "show", "old.example")["domain"]
    assert shown["dkim"]["name"].endswith("._domainkey.old.example")
    assert installation.json("domain", "list")["domains"] == [shown]


def test_a_registered_domain_is_verified_by_any_writing_of_its_name(installation: Installation) -> None:
    domain = installation.json("domain", "add", "bücher.example")["domain"]
    for name in ("bücher.example", "xn--bcher-kva.example", "BÜCHER.example"):
        verified = installation.json("domain", "verify", name)["domain"]
        assert (verified["id"], verified["verified"]) == (domain["id"], True)


def test_an_unregistered_or_impossible_domain_is_refused_with_a_sentence(installation: Installation) -> None:
    assert installation.refusal("domain", "show", "example.org") == "the account has no domain example.org"
    assert installation.refusal("domain", "verify", "example.org") == "the account has no domain example.org"
    assert installation.refusal("domain", "verify", "no spaces")
    assert installation.refusal("domain", "add", "a..example").startswith("name: ")


def test_a_domain_can_be_registered_once_and_proven_by_one_account(installation: Installation) -> None:
    installation.text("domain", "add", "example.org", "--verified")
    assert "is a domain of this account already" in installation.refusal("domain", "add", "example.org")
    installation.text("account", "create", "--name", "Other")
    assert "proven by another" in installation.refusal("domain", "add", "example.org", "--account", "Other")
