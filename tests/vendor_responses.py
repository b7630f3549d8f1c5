"""Responses of other services, as their documentation shows them."""

from typing import Any

# As in https://resend.com/docs/api-reference, November 2026.
TEMPLATE_ID = "34a080c9-b17d-4187-ad80-5af20266e535"
RESEND: dict[str, Any] = {
    "/domains": {
        "object": "list",
        "has_more": False,
        "data": [
            {
                "id": "d91cd9bd-1176-453e-8fc1-35364d380206",
                "name": "example.com",
                "status": "not_started",
                "created_at": "2026-04-26 20:21:26.347412+00",
                "region": "us-east-1",
                "capabilities": {"sending": "enabled", "receiving": "disabled"},
            }
        ],
    },
    "/templates": {
        "object": "list",
        "has_more": False,
        "data": [
            {"id": TEMPLATE_ID, "name": "reset-password", "status": "published", "alias": "reset-password"},
            {"id": "b7f9c2e1-1234-4abc-9def-567890abcdef", "name": "welcome", "status": "published", "alias": None},
            {"id": "c8f9c2e1-1234-4abc-9def-567890abcdef", "name": "digest", "status": "published", "alias": "digest"},
        ],
    },
    f"/templates/{TEMPLATE_ID}": {
        "object": "template",
        "id": TEMPLATE_ID,
        "current_version_id": "b2693018-7abb-4b4b-b4cb-aadf72dc06bd",
        "alias": "reset-password",
        "name": "reset-password",
        "created_at": "2026-10-06T23:47:56.678Z",
        "updated_at": "2026-10-06T23:47:56.678Z",
        "status": "published",
        "published_at": "2026-10-06T23:47:56.678Z",
        "from": "John Doe <john.doe@example.com>",
        "subject": "Hello, {{{NAME}}}",
        "reply_to": None,
        "html": "<p>Hi {{{NAME}}}</p>",
        "text": "Hi {{{NAME}}}",
        "variables": [
            {"id": "e169aa45-1ecf-4183-9955-b1499d5701d3", "key": "NAME", "type": "string", "fallback_value": "user"}
        ],
        "has_unpublished_versions": True,
    },
    "/templates/b7f9c2e1-1234-4abc-9def-567890abcdef": {
        "id": "b7f9c2e1-1234-4abc-9def-567890abcdef",
        "alias": None,
        "name": "welcome",
        "status": "published",
        "from": None,
        "subject": None,
        "html": "<p>Welcome</p>",
        "text": None,
        "variables": None,
        "has_unpublished_versions": False,
    },
    "/templates/c8f9c2e1-1234-4abc-9def-567890abcdef": {
        "id": "c8f9c2e1-1234-4abc-9def-567890abcdef",
        "alias": "digest",
        "name": "digest",
        "status": "published",
        "subject": "News",
        "html": "<ul>{{#each ITEMS}}<li>{{{this}}}</li>{{/each}}</ul>",
        "text": None,
    },
    "/suppressions?limit=100": {
        "object": "list",
        "has_more": True,
        "data": [
            {
                "object": "suppression",
                "id": "e169aa45-1ecf-4183-9955-b1499d5701d3",
                "email": "Steve.Wozniak@example.com",
                "origin": "manual",
                "source_id": None,
                "created_at": "2026-10-06T23:47:56.678Z",
            }
        ],
    },
    "/suppressions?limit=100&after=e169aa45-1ecf-4183-9955-b1499d5701d3": {
        "object": "list",
        "has_more": False,
        "data": [
            {
                "object": "suppression",
                "id": "520784e2-887d-4c25-b53c-4ad46ad38100",
                "email": "susan.kare@example.com",
                "origin": "bounce",
                "source_id": "4ef9a417-02e9-4d39-ad75-9611e0fcc33c",
                "created_at": "2026-10-07T08:12:03.412Z",
            },
            {"id": "5", "email": "not an address", "origin": "manual", "created_at": None},
        ],
    },
    "/webhooks": {
        "object": "list",
        "has_more": False,
        "data": [
            {
                "id": "7ab123cd-ef45-6789-abcd-ef0123456789",
                "created_at": "2026-09-10T10:15:30.000Z",
                "status": "enabled",
                "endpoint": "https://first-endpoint.example.com/webhook",
                "events": ["email.sent", "email.opened"],
            },
            {"id": "8", "endpoint": "https://127.0.0.1/webhook", "events": ["email.bounced"]},
            {"id": "9", "endpoint": "https://opens.example.com/", "events": ["email.opened"]},
        ],
    },
}
# As in https://postmarkapp.com/developer/api, November 2026.
POSTMARK: dict[str, Any] = {
    "/domains": {
        "TotalCount": 1,
        "Domains": [
            {
                "Name": "postmarkapp.com",
                "SPFVerified": True,
                "DKIMVerified": True,
                "WeakDKIM": False,
                "ReturnPathDomainVerified": False,
                "ID": 36735,
            }
        ],
    },
    "/templates?count=500&offset=0": {
        "TotalCount": 3,
        "Templates": [
            {
                "Active": True,
                "TemplateId": 1234,
                "Name": "Account Activation Email",
                "Alias": "Welcome",
                "TemplateType": "Standard",
                "LayoutTemplate": "my-layout",
            },
            {"Active": True, "TemplateId": 9, "Name": "Layout", "Alias": "my-layout", "TemplateType": "Layout"},
            {"Active": True, "TemplateId": 5678, "Name": "Receipt", "Alias": None, "TemplateType": "Standard"},
        ],
    },
    "/templates/1234": {
        "TemplateId": 1234,
        "Name": "Account Activation Email",
        "Subject": "Hi {{person.first_name}}",
        "HtmlBody": "<p>Hello {{ person.first_name }}{{! not sent }}</p>",
        "TextBody": "Hello {{{person.first_name}}}",
        "AssociatedServerId": 1,
        "Active": True,
        "Alias": "Welcome",
        "TemplateType": "Standard",
        "LayoutTemplate": "my-layout",
    },
    "/templates/my-layout": {
        "TemplateId": 9,
        "Name": "Layout",
        "HtmlBody": "<body>{{{@content}}}</body>",
        "TextBody": "{{{ @content }}}\n-- \nShop",
        "Active": True,
        "Alias": "my-layout",
        "TemplateType": "Layout",
    },
    "/templates/5678": {
        "TemplateId": 5678,
        "Name": "Receipt",
        "Subject": "Receipt",
        "HtmlBody": "{{#each receipt_details}}{{description}}{{/each}}",
        "TextBody": None,
        "Active": True,
        "Alias": None,
        "TemplateType": "Standard",
        "LayoutTemplate": None,
    },
    "/message-streams": {
        "MessageStreams": [
            {"ID": "outbound", "ServerID": 1, "Name": "Transactional Stream", "MessageStreamType": "Transactional"},
            {"ID": "inbound", "ServerID": 1, "Name": "Inbound Stream", "MessageStreamType": "Inbound"},
        ],
        "TotalCount": 2,
    },
    "/message-streams/outbound/suppressions/dump": {
        "Suppressions": [
            {
                "EmailAddress": "address@wildbit.com",
                "SuppressionReason": "ManualSuppression",
                "Origin": "Recipient",
                "CreatedAt": "2019-12-10T08:58:33-05:00",
            },
            {
                "EmailAddress": "bounce.address@wildbit.com",
                "SuppressionReason": "HardBounce",
                "Origin": "Recipient",
                "CreatedAt": "2019-12-11T08:58:33-05:00",
            },
        ]
    },
    "/webhooks": {
        "Webhooks": [
            {
                "ID": 7,
                "Url": "https://hooks.example.com/",
                "HttpAuth": {"Username": "user", "Password": "pass"},
                "Triggers": {"Bounce": {"Enabled": True, "IncludeContent": False}},
            },
            {
                "ID": 1234567,
                "Url": "https://user:p%40ss@www.example.com/hook?key=secret",
                "MessageStream": "outbound",
                "HttpHeaders": [{"Name": "name", "Value": "value"}],
                "Triggers": {
                    "Open": {"Enabled": True, "PostFirstOpenOnly": False},
                    "Click": {"Enabled": False},
                    "Delivery": {"Enabled": True},
                    "Bounce": {"Enabled": False, "IncludeContent": False},
                    "SpamComplaint": {"Enabled": False, "IncludeContent": False},
                    "SubscriptionChange": {"Enabled": False},
                },
            },
        ]
    },
}
