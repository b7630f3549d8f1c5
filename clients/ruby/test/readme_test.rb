# frozen_string_literal: true

require_relative "helper"
require "stringio"
require "tmpdir"

# Runs the code of the README, block by block, against a little server.
class ReadmeTest < PostroadTest
  README = File.read(File.expand_path("../README.md", __dir__))
  SEND, WAIT, MANAGE, ERRORS, RAILS, WEBHOOK = README.scan(/^```ruby\n(.*?)^```$/m).flatten
  SECRET = "whsec_readme"

  # Where the code runs: its use keeps the Rack application, and its config that of Rails.
  class Script
    Config = Struct.new(:action_mailer)
    Settings = Struct.new(:delivery_method, :postroad_settings)
    attr_reader :application, :config

    def initialize
      @config = Config.new(Settings.new)
    end

    def use(middleware, **options, &block)
      @application = middleware.new(->(_) { [404, {}, []] }, **options, &block)
    end

    def scope
      binding
    end
  end

  def setup
    @script = Script.new
    @scope = @script.scope
    @environment = ENV.to_h
    ENV.update("POSTROAD_API_KEY" => TOKEN, "POSTROAD_WEBHOOK_SECRET" => SECRET)
  end

  def teardown
    ENV.replace(@environment)
    super
  end

  # What the code prints, with the server in the place of the example's.
  def printed(code, url = "")
    capture_io { @scope.eval(code.gsub("https://mail.example.com", url), "README.md") }.first
  end

  def status(word)
    ScriptedServer.answer(200, { id: "em_1", status: word, recipients: [{ email: "ada@example.net", status: word }] })
  end

  def test_send_wait_and_errors
    poor = ScriptedServer.answer(402, { error: "no credits", code: "insufficient_credits" })
    tomorrow = ScriptedServer.answer(429, { error: "enough for today", code: "warmup_limited" }, "Retry-After" => "40000")
    wrong = ScriptedServer.answer(409, { error: "another email", code: "idempotency_conflict" })
    managed = [{ template: {} }, { results: [{ id: "em_2" }] }, { id: "em_2" },
               { messages: [{ id: "em_3", status: "queued" }], next_cursor: nil }]
    managed = managed.map { |body| ScriptedServer.answer(200, body) }
    scripted = server(ACCEPTED, status("delivered"), *managed, poor, tomorrow, wrong)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "receipt.pdf"), "%PDF")
      Dir.chdir(folder) { assert_equal "em_1\n", printed(SEND, scripted.url) }
    end
    sent = JSON.parse(scripted.requests.fetch(0).body)
    assert_equal [{ "filename" => "receipt.pdf", "content" => "JVBERg==" }], sent["attachments"]

    assert_equal "ada@example.net: delivered\n", printed(WAIT)
    assert_equal "em_3: queued\n", printed(MANAGE)
    assert_equal "Add credits, then send again.\n", printed(ERRORS)
    assert_equal "Send again later, with the key order-1042-receipt.\n", printed(ERRORS)
    assert_predicate error_of { printed(ERRORS) }, :idempotency_conflict?
    assert_equal 9, scripted.requests.size
  end

  def test_webhook
    printed(WEBHOOK)
    body = '{"id":"evt_1","type":"email.delivered","data":{"to":"ada@example.net"}}'
    now = Time.now.to_i
    header = "t=#{now},v1=#{OpenSSL::HMAC.hexdigest("SHA256", SECRET, "#{now}.#{body}")}"
    assert_equal ["email.delivered: ada@example.net\n", 204], receive(body, header)
    assert_equal ["", 400], receive("#{body} ", header)
    assert_equal ["", 400], receive(body, nil)
  end

  def receive(body, header)
    response = nil
    output, = capture_io do
      response = @script.application.call({ "PATH_INFO" => "/postroad", "REQUEST_METHOD" => "POST",
                                            "rack.input" => StringIO.new(body), "HTTP_SERVICE_SIGNATURE" => header })
    end
    [output, response.first]
  end

  def test_rails
    @scope.local_variable_set(:config, @script.config)
    printed(RAILS, "http://127.0.0.1:1")
    settings = @script.config.action_mailer
    assert_equal :postroad, settings.delivery_method
    assert_kind_of Postroad::Client, Postroad::DeliveryMethod.new(settings.postroad_settings).client
  end

  def test_it_is_short
    assert_operator README.lines.size, :<=, 150
  end
end
