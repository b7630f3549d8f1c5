"""Code that sends a first mail over HTTP, as data."""

from typing import Final

from postroad.dashboard import literals

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
        "Nothing to install.",
        literals.double,
        """\
import json
import urllib.request
import uuid

message = {
    "from": @sender,
    "to": @recipient,
    "subject": "Hello",
    "text": "It works.",
}
request = urllib.request.Request(
    @url,
    data=json.dumps(message).encode(),
    headers={
        "Authorization": @bearer,
        "Content-Type": "application/json",
        # Repeat a request with the same key, and nothing is sent twice.
        "Idempotency-Key": str(uuid.uuid4()),
    },
)
with urllib.request.urlopen(request) as answer:
    print(answer.read().decode())
""",
    ),
    literals.Source(
        "Node.js",
        "Nothing to install, from version 20 on.",
        literals.double,
        """\
fetch(@url, {
  method: "POST",
  headers: {
    "Authorization": @bearer,
    "Content-Type": "application/json",
    // Repeat a request with the same key, and nothing is sent twice.
    "Idempotency-Key": crypto.randomUUID(),
  },
  body: JSON.stringify({
    from: @sender,
    to: @recipient,
    subject: "Hello",
    text: "It works.",
  }),
}).then(async (answer) => console.log(answer.status, await answer.text()));
""",
    ),
    literals.Source(
        "PHP",
        "With the curl extension.",
        literals.single,
        """\
<?php
$request = curl_init(@url);
curl_setopt_array($request, [
    CURLOPT_POST => true,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => [
        @authorization,
        'Content-Type: application/json',
        // Repeat a request with the same key, and nothing is sent twice.
        'Idempotency-Key: ' . bin2hex(random_bytes(16)),
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'from' => @sender,
        'to' => @recipient,
        'subject' => 'Hello',
        'text' => 'It works.',
    ]),
]);
echo curl_exec($request);
""",
    ),
)
