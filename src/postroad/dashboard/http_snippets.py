"""Snippets that send a message over HTTP: with curl, and with the client library of each language.

The libraries are not in any registry yet, so they are installed from a checkout of the repository next to the reader's
project. Each snippet is a complete program that prints the message id, or prints the error and fails.
"""

from typing import Final

from postroad.dashboard import literals
from postroad.model import caller

# What a key that does not send is tried with: something to read in each scope.
PATHS: Final = {
    caller.Scope.READ: "/v1/messages",
    caller.Scope.TEMPLATES: "/v1/templates",
    caller.Scope.SUPPRESSIONS: "/v1/suppressions",
    caller.Scope.WEBHOOKS: "/v1/webhooks",
    caller.Scope.DOMAINS: "/v1/domains",
    caller.Scope.STATISTICS: "/v1/statistics",
    caller.Scope.TEAM: "/v1/api-keys",
    caller.Scope.OPERATOR: "/v1/operator/health",
}
REQUEST: Final = literals.Source("curl", "In a terminal.", literals.shell, "curl @url -H @authorization\n")

SOURCES: Final = (
    literals.Source(
        "curl",
        "In a terminal.",
        literals.shell,
        """\
curl @url \\
  -H @authorization \\
  -H 'Content-Type: application/json' \\
  -H "Idempotency-Key: $(date +%s)" \\
  -d @message
""",
    ),
    literals.Source(
        "Python",
        "",
        literals.double,
        """\
import sys

from postroad_client import Client, Email, PostroadError

client = Client(@base_url, token=@api_key)
email = Email(
@members
)
try:
    # Safe to repeat with a key of your own: send(email, idempotency_key="order-1042")
    receipt = client.send(email)
except PostroadError as error:
    sys.exit(str(error))
print(receipt.id)
""",
        install="""\
pip install ../postroad/clients/python
""",
        members=literals.MemberStyle(line="    {name}={value},", names={"from": "sender"}, booleans=("False", "True")),
    ),
    literals.Source(
        "JavaScript",
        "",
        literals.double,
        """\
// hello.mjs
import { Postroad, PostroadError } from "postroad";

const postroad = new Postroad({ baseUrl: @base_url, token: @api_key });
const email = {
@members
};
try {
  // Safe to repeat with a key of your own: send(email, { idempotencyKey: "order-1042" })
  const receipt = await postroad.send(email);
  console.log(receipt.id);
} catch (error) {
  if (!(error instanceof PostroadError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
""",
        install="""\
npm install --install-links ../postroad/clients/javascript
""",
        members=literals.MemberStyle(line="  {name}: {value},", names={"reply_to": "replyTo"}),
    ),
    literals.Source(
        "PHP",
        "",
        literals.single,
        """\
<?php
require __DIR__ . '/vendor/autoload.php';

$client = new Postroad\\Client(@base_url, token: @api_key);
$email = new Postroad\\Email(
@members
);
try {
    // Safe to repeat with a key of your own: send($email, idempotencyKey: 'order-1042')
    $receipt = $client->send($email);
} catch (Postroad\\PostroadException $error) {
    fwrite(STDERR, $error->getMessage() . "\\n");
    exit(1);
}
echo $receipt->id, "\\n";
""",
        install="""\
composer config repositories.postroad path ../postroad/clients/php
composer require postroad/postroad-client:@dev
""",
        members=literals.MemberStyle(
            line="    {name}: {value},", names={"reply_to": "replyTo"}, pair="{} => {}", pairs="[{}]"
        ),
    ),
    literals.Source(
        "Go",
        "",
        literals.go,
        """\
package main

import (
	"context"
	"fmt"
	"log"

	postroad "github.com/postroad/postroad/clients/go"
)

func main() {
	client, err := postroad.New(@base_url, postroad.WithToken(@api_key))
	if err != nil {
		log.Fatal(err)
	}
	email := postroad.Email{
@members
	}
	// Safe to repeat with a key of your own: postroad.WithIdempotencyKey("order-1042")
	receipt, err := client.Send(context.Background(), email)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.ID)
}
""",
        install="""\
go mod edit -replace github.com/postroad/postroad/clients/go=../postroad/clients/go
go get github.com/postroad/postroad/clients/go
""",
        members=literals.MemberStyle(
            line="\t\t{name}:{gap}{value},",
            names={
                "from": "From",
                "to": "To",
                "cc": "CC",
                "bcc": "BCC",
                "reply_to": "ReplyTo",
                "subject": "Subject",
                "text": "Text",
                "html": "HTML",
                "template": "Template",
                "variables": "Variables",
                "headers": "Headers",
                "tags": "Tags",
                "metadata": "Metadata",
            },
            several="[]string{{{}}}",
            pairs="map[string]string{{{}}}",
            array="[]any{{{}}}",
            object="map[string]any{{{}}}",
            lists=frozenset({"to", "cc", "bcc", "reply_to", "tags"}),
            is_aligned=True,
        ),
    ),
    literals.Source(
        "Ruby",
        "",
        literals.single,
        """\
require "postroad"

client = Postroad::Client.new(@base_url, token: @api_key)
email = Postroad::Email.new(
@members
)
begin
  # Safe to repeat with a key of your own: deliver(email, idempotency_key: "order-1042")
  receipt = client.deliver(email)
rescue Postroad::Error => e
  abort e.message
end
puts receipt.id
""",
        install="""\
# Gemfile
gem "postroad", path: "../postroad/clients/ruby"
""",
        members=literals.MemberStyle(line="  {name}: {value},", pair="{} => {}", pairs="{{ {} }}"),
    ),
    literals.Source(
        "Java",
        "",
        literals.java,
        """\
import dev.postroad.Email;
import dev.postroad.Postroad;
import dev.postroad.PostroadException;
import dev.postroad.Receipt;

public class Hello {
    public static void main(String[] arguments) {
        Postroad postroad = Postroad.builder(@base_url).token(@api_key).build();
        Email email = Email.builder()
@members
                .build();
        try {
            // Safe to repeat with a key of your own: send(email, "order-1042")
            Receipt receipt = postroad.send(email);
            System.out.println(receipt.id());
        } catch (PostroadException e) {
            System.err.println(e.getMessage());
            System.exit(1);
        }
    }
}
""",
        install="""\
mvn install -f ../postroad/clients/java   # then depend on dev.postroad:postroad-client:0.1.0
""",
        members=literals.MemberStyle(
            line="                .{name}({value})",
            names={"reply_to": "replyTo", "headers": "header", "tags": "tag", "variables": "variable"},
            several="{}",
            pair="{}, {}",
            array="java.util.List.of({})",
            object="java.util.Map.ofEntries({})",
            entry="java.util.Map.entry({}, {})",
            has_separate_pairs=True,
        ),
    ),
)
