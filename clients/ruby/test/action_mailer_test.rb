# frozen_string_literal: true

require_relative "helper"

begin
  verbose, $VERBOSE = $VERBOSE, nil # the framework's own warnings
  require "action_mailer"
rescue LoadError
  nil
ensure
  $VERBOSE = verbose
end
require "postroad/action_mailer"

# A small application with Action Mailer.
class ActionMailerTest < PostroadTest
  if defined?(ActionMailer::Base)
    class ShopMailer < ActionMailer::Base
      self.delivery_method = :postroad

      def receipt
        attachments["total.txt"] = "Total: 42\n"
        attachments.inline["logo.png"] = "\x00\xFF".b
        mail(from: "Jörg <hello@example.com>", to: ["\"Ada, L\" <ada@example.net>", "b@example.net"], cc: "c@example.net",
             bcc: "d@example.net", reply_to: "help@example.com", subject: "Grüße",
             "X-Order" => "1042", "X-Service-Tag" => "receipt", "X-Service-Metadata-customer" => "ada",
             "Idempotency-Key" => "order-1042") do |format|
          format.text { render plain: "Danke schön" }
          format.html { render html: "<img src=\"#{attachments["logo.png"].url}\">".html_safe } # rubocop:disable Rails/OutputSafety
        end
      end

      def replies
        mail(from: "hello@example.com", to: "ada@example.net", reply_to: ["a@example.com", "Bo <b@example.com>"],
             subject: "Hi", body: "Only text", content_type: "text/plain")
      end

      def plain
        mail(from: "hello@example.com", to: "ada@example.net", subject: "Hi", body: "Only text", content_type: "text/plain")
      end

      def template
        mail(from: "hello@example.com", to: "ada@example.net", subject: nil, body: "", content_type: "text/plain",
             "X-Service-Template" => "welcome", "X-Service-Variables" => '{"name":"Ada"}')
      end
    end
  end

  def setup
    skip "Action Mailer is missing: install the package ruby-actionmailer" unless defined?(ActionMailer::Base)
    @server = server(ACCEPTED)
    ShopMailer.postroad_settings = { base_url: @server.url, token: TOKEN, max_elapsed: 0 }
  end

  def sent
    JSON.parse(@server.requests.last.body)
  end

  def test_several_addresses_for_replies
    ShopMailer.replies.deliver_now
    assert_equal ["a@example.com", "Bo <b@example.com>"], sent["reply_to"]
  end

  def test_everything
    ShopMailer.receipt.deliver_now
    body = sent
    body["attachments"].sort_by! { |attachment| attachment["filename"] }.reverse!
    html = body.delete("html")
    cid = html[/cid:([^"]+)/, 1]
    assert_equal({
      "from" => '"Jörg" <hello@example.com>', "to" => ["\"Ada, L\" <ada@example.net>", "b@example.net"],
      "cc" => ["c@example.net"], "bcc" => ["d@example.net"], "reply_to" => "help@example.com", "subject" => "Grüße",
      "text" => "Danke schön", "headers" => { "X-Order" => "1042" }, "tags" => ["receipt"],
      "metadata" => { "customer" => "ada" },
      "attachments" => [
        { "filename" => "total.txt", "content" => ["Total: 42\n"].pack("m0"), "content_type" => "text/plain" },
        { "filename" => "logo.png", "content" => "AP8=", "content_type" => "image/png", "content_id" => cid }
      ]
    }, body)
    assert_equal "order-1042", @server.requests.last.headers["idempotency-key"]
  end

  def test_text_only
    ShopMailer.plain.deliver_now
    assert_equal({ "from" => "hello@example.com", "to" => ["ada@example.net"], "subject" => "Hi", "text" => "Only text" }, sent)
  end

  def test_template
    ShopMailer.template.deliver_now
    assert_equal "welcome", sent["template"]
    assert_equal({ "name" => "Ada" }, sent["variables"])
    refute_includes sent, "text"
  end

  def test_an_error_reaches_the_application
    refused = server(ScriptedServer.answer(402, { error: "no credits", code: "insufficient_credits" }))
    ShopMailer.postroad_settings = { base_url: refused.url, token: TOKEN, max_elapsed: 0 }
    assert_raises(Postroad::InsufficientCreditsError) { ShopMailer.plain.deliver_now }
  end
end
