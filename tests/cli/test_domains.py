"""`postroad domain`, on both engines."""

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
    assert installation.text("domain", "list").splitlines()[1].split()[1:] == ["a.example", "-"]


def test_a_registered_domain_is_verified_by_any_writing_of_its_name(installation: Installation) -> None:
    domain = installation.json("domain", "add", "bücher.example")["domain"]
    for name in ("bücher.example", "xn--bcher-kva.example", "BÜCHER.example"):
        verified = installation.json("domain", "verify", name)["domain"]
        assert (verified["id"], verified["verified"]) == (domain["id"], True)


def test_an_unregistered_or_impossible_domain_is_refused_with_a_sentence(installation: Installation) -> None:
    assert installation.refusal("domain", "verify", "example.org") == "the account has no domain example.org"
    assert installation.refusal("domain", "verify", "no spaces")
    assert installation.refusal("domain", "add", "a..example").startswith("name: ")


def test_a_domain_can_be_registered_once_and_proven_by_one_account(installation: Installation) -> None:
    installation.text("domain", "add", "example.org", "--verified")
    assert "is a domain of this account already" in installation.refusal("domain", "add", "example.org")
    installation.text("account", "create", "--name", "Other")
    assert "proven by another" in installation.refusal("domain", "add", "example.org", "--account", "Other")
