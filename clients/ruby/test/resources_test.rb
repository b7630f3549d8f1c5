# frozen_string_literal: true

require_relative "helper"

# Every operation beside sending and reading: the request that it makes, and what it gives.
class ResourcesTest < PostroadTest
  NOON = Time.utc(2026, 1, 31, 12)
  BODY = {
    "id" => "em_1", "status" => "queued", "results" => [{ "id" => "em_1" }], "statistics" => { "queued" => 3 },
    "template" => { "alias" => "welcome" }, "suppression" => { "email" => "ada@example.net" },
    "domain" => { "name" => "example.com" }, "webhook" => { "id" => "whk_1" }, "webhooks" => [{ "id" => "whk_1" }],
    "delivery" => { "id" => "whd_1" }, "secret" => "whsec_1", "next_cursor" => nil, "messages" => [{ "id" => "em_1" }],
    "templates" => [{ "alias" => "welcome" }], "suppressions" => [{ "email" => "ada@example.net" }],
    "domains" => [{ "id" => "dom_1" }], "deliveries" => [{ "id" => "whd_1" }], "account" => { "balance" => 3 },
    "api_keys" => [{ "id" => "key_1" }], "api_key" => { "id" => "key_1" }
  }.freeze
  # What is called, its request line, its body, and the member of the response that it gives; "" is all of it.
  OPERATIONS = [
    [->(c) { c.deliver_batch([EMAIL], all_or_nothing: true) }, "POST /emails/batch",
     { "emails" => [JSON.parse(EMAIL.to_json)], "all_or_nothing" => true }, "results"],
    [->(c) { c.deliver_template_batch(from: "a@example.com", template: "welcome", recipients: [{ to: "b@example.net" }]) },
     "POST /emails/batch",
     { "from" => "a@example.com", "template" => "welcome", "recipients" => [{ "to" => "b@example.net" }] }, "results"],
    [->(c) { c.reschedule("em_1", NOON) }, "PATCH /emails/em_1", { "send_at" => "2026-01-31T12:00:00.000Z" }, ""],
    [->(c) { c.reschedule("em_1", nil) }, "PATCH /emails/em_1", { "send_at" => nil }, ""],
    [->(c) { c.cancel("em_1") }, "POST /emails/em_1/cancel", nil, ""],
    [->(c) { c.get("em_1", include_queue: true).id }, "GET /emails/em_1?include=queue", nil, "id"],
    [->(c) { c.statistics(period: "7d") }, "GET /v1/statistics?period=7d", nil, "statistics"],
    [->(c) { c.messages.list(metadata: "order:1 2", after: NOON).to_a },
     "GET /v1/messages?metadata=order%3A1%202&after=2026-01-31T12%3A00%3A00.000Z", nil, "messages"],
    [->(c) { c.messages.get("em_1") }, "GET /v1/messages/em_1", nil, ""],
    [->(c) { c.messages.retry("em_1", recipient_id: "rcp_1") }, "POST /v1/messages/em_1/retry",
     { "recipient_id" => "rcp_1" }, ""],
    [->(c) { c.templates.list.to_a }, "GET /v1/templates", nil, "templates"],
    [->(c) { c.templates.get("a/b c") }, "GET /v1/templates/a%2Fb%20c", nil, "template"],
    [->(c) { c.templates.save("welcome", subject: "Hi", text: "Ho") }, "PUT /v1/templates/welcome",
     { "subject" => "Hi", "text" => "Ho" }, "template"],
    [->(c) { c.templates.delete("welcome") }, "DELETE /v1/templates/welcome", nil, nil],
    [->(c) { c.templates.preview("welcome") }, "POST /v1/templates/welcome/preview", { "variables" => {} }, ""],
    [->(c) { c.suppressions.list(source: "account").to_a }, "GET /v1/suppressions?source=account", nil, "suppressions"],
    [->(c) { c.suppressions.create(email: "ada@example.net", reason: "asked") }, "POST /v1/suppressions",
     { "email" => "ada@example.net", "reason" => "asked" }, "suppression"],
    [->(c) { c.suppressions.get("a+b@example.net") }, "GET /v1/suppressions/a%2Bb%40example.net", nil, "suppression"],
    [->(c) { c.suppressions.delete("ada@example.net") }, "DELETE /v1/suppressions/ada%40example.net", nil, nil],
    [->(c) { c.domains.list(limit: 100).to_a }, "GET /v1/domains?limit=100", nil, "domains"],
    [->(c) { c.domains.create(name: "example.com") }, "POST /v1/domains", { "name" => "example.com" }, "domain"],
    [->(c) { c.domains.get("dom_1") }, "GET /v1/domains/dom_1", nil, "domain"],
    [->(c) { c.domains.check("dom_1") }, "POST /v1/domains/dom_1/check", nil, "domain"],
    [->(c) { c.domains.rotate_key("dom_1") }, "POST /v1/domains/dom_1/rotate-key", nil, "domain"],
    [->(c) { c.domains.delete("dom_1") }, "DELETE /v1/domains/dom_1", nil, nil],
    [->(c) { c.webhooks.list.to_a }, "GET /v1/webhooks", nil, "webhooks"],
    [->(c) { c.webhooks.create(url: "https://example.com", events: ["email.bounced"]) }, "POST /v1/webhooks",
     { "url" => "https://example.com", "events" => ["email.bounced"] }, ""],
    [->(c) { c.webhooks.get("whk_1") }, "GET /v1/webhooks/whk_1", nil, "webhook"],
    [->(c) { c.webhooks.update("whk_1", enabled: false) }, "PATCH /v1/webhooks/whk_1", { "enabled" => false }, "webhook"],
    [->(c) { c.webhooks.delete("whk_1") }, "DELETE /v1/webhooks/whk_1", nil, nil],
    [->(c) { c.webhooks.rotate_secret("whk_1", overlap_hours: 24) }, "POST /v1/webhooks/whk_1/rotate-secret",
     { "overlap_hours" => 24 }, "secret"],
    [->(c) { c.webhooks.ping("whk_1") }, "POST /v1/webhooks/whk_1/ping", nil, "delivery"],
    [->(c) { c.webhooks.deliveries("whk_1", status: "failed").to_a }, "GET /v1/webhooks/whk_1/deliveries?status=failed",
     nil, "deliveries"],
    [->(c) { c.webhooks.get_delivery("whk_1", "whd_1") }, "GET /v1/webhooks/whk_1/deliveries/whd_1", nil, "delivery"],
    [->(c) { c.webhooks.replay_failed("whk_1", after: NOON, before: NOON) }, "POST /v1/webhooks/whk_1/deliveries/replay",
     { "after" => "2026-01-31T12:00:00.000Z", "before" => "2026-01-31T12:00:00.000Z" }, ""],
    [->(c) { c.api_keys.list.to_a }, "GET /v1/api-keys", nil, "api_keys"],
    [->(c) { c.api_keys.create(name: "shop", scopes: ["send"]) }, "POST /v1/api-keys",
     { "name" => "shop", "scopes" => ["send"] }, ""],
    [->(c) { c.api_keys.update("key_1", scopes: ["read"]) }, "PATCH /v1/api-keys/key_1", { "scopes" => ["read"] }, "api_key"],
    [->(c) { c.api_keys.revoke("key_1") }, "DELETE /v1/api-keys/key_1", nil, nil],
    [->(c) { c.account }, "GET /v1/account", nil, "account"],
    [->(c) { c.webhooks.replay("whk_1", "whd_1") }, "POST /v1/webhooks/whk_1/deliveries/whd_1/replay", nil, "delivery"]
  ].freeze

  def test_operations
    scripted = server(*OPERATIONS.map { |_, line| line.start_with?("DELETE") ? ScriptedServer.answer(204) : all })
    caller = client(scripted.url)
    OPERATIONS.each do |operation, line, body, member|
      given = operation.call(caller)
      request = scripted.requests.last
      assert_equal line, "#{request.method} #{request.path}"
      body ? assert_equal(body, JSON.parse(request.body), line) : assert_empty(request.body, line)
      assert_equal line.end_with?("/batch"), request.headers.key?("idempotency-key"), line
      member ? assert_equal(member.empty? ? BODY : BODY[member], given, line) : assert_nil(given, line)
    end
    assert_equal OPERATIONS.size, scripted.requests.size
  end

  def test_a_list_reads_the_pages_that_are_needed
    scripted = server(ScriptedServer.answer(200, { domains: [{ id: "dom_1" }, { id: "dom_2" }], next_cursor: "dom_2" }),
                      ScriptedServer.answer(200, { domains: [{ id: "dom_3" }], next_cursor: nil }))
    domains = client(scripted.url).domains.list(limit: 2)
    assert_equal "dom_1", domains.first["id"]
    assert_equal 1, scripted.requests.size
  end

  def test_a_list_goes_on_to_its_end
    scripted = server(ScriptedServer.answer(200, { domains: [{ id: "dom_1" }, { id: "dom_2" }], next_cursor: "dom_2" }),
                      ScriptedServer.answer(200, { domains: [{ id: "dom_3" }], next_cursor: nil }))
    assert_equal %w[dom_1 dom_2 dom_3], client(scripted.url).domains.list(limit: 2).map { |domain| domain["id"] }
    assert_equal "/v1/domains?limit=2&cursor=dom_2", scripted.requests.last.path
  end

  def test_only_what_does_no_harm_twice_is_repeated_after_a_5xx
    [
      [->(c) { c.templates.delete("welcome") }, 2], [->(c) { c.cancel("em_1") }, 2], [->(c) { c.deliver_batch([]) }, 2],
      [->(c) { c.domains.create(name: "example.com") }, 1], [->(c) { c.messages.retry("em_1") }, 1]
    ].each do |operation, requests|
      scripted = server(ScriptedServer.answer(500, { error: "a fault", code: "internal_error" }), all)
      begin
        operation.call(client(scripted.url))
      rescue Postroad::ServerError => e
        assert_equal "internal_error", e.code
      end
      assert_equal requests, scripted.requests.size
    end
  end

  def test_what_was_not_done_is_repeated
    scripted = server(BUSY, all)
    assert_equal({ "name" => "example.com" }, client(scripted.url).domains.create(name: "example.com"))
    assert_equal 2, scripted.requests.size
  end

  def test_a_response_of_another_server_is_unexpected
    scripted = server(ScriptedServer.answer(200, { hello: "world" }))
    [->(c) { c.domains.get("dom_1") }, ->(c) { c.deliver_batch([]) }, ->(c) { c.statistics }].each do |operation|
      assert_equal "unexpected_response", error_of { operation.call(client(scripted.url)) }.code
    end
  end

  def test_nothing_leads_to_another_path
    nowhere = client("http://127.0.0.1:1")
    ["", ".", ".."].each { |name| assert_raises(ArgumentError) { nowhere.templates.get(name) } }
    assert_raises(ArgumentError) { nowhere.cancel("em_1/../em_2") }
    assert_raises(ArgumentError) { nowhere.deliver_batch([{ from: "a@example.com" }]) }
  end

  def all
    ScriptedServer.answer(200, BODY)
  end
end
