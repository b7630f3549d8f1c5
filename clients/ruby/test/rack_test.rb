# frozen_string_literal: true

require_relative "helper"
require "openssl"
require "stringio"
require "postroad/rack"

# The middleware for webhooks, called as Rack does.
class RackTest < PostroadTest
  SECRET = "whsec_rack"
  BODY = '{"id":"evt_1","type":"email.delivered","data":{"to":"ada@example.net"}}'

  def setup
    @events = []
    @application = Postroad::WebhookReceiver.new(->(_) { [200, {}, ["app"]] }, path: "/postroad", secret: ["whsec_old", SECRET]) do |event|
      raise "the database is away" if event.id == "evt_bad"

      @events << event
    end
  end

  def post(body, signed: body, path: "/postroad", method: "POST")
    now = Time.now.to_i
    header = "t=#{now},v1=#{OpenSSL::HMAC.hexdigest("SHA256", SECRET, "#{now}.#{signed}")}"
    @application.call({ "PATH_INFO" => path, "REQUEST_METHOD" => method, "rack.input" => StringIO.new(body),
                        "HTTP_SERVICE_SIGNATURE" => header }).first
  end

  def test_events
    assert_equal 204, post(BODY)
    assert_equal [%w[evt_1 email.delivered]], @events.map { |event| [event.id, event.type] }
  end

  def test_what_is_refused
    assert_equal 400, post("#{BODY} ", signed: BODY)
    assert_equal 400, post("[]")
    assert_equal 405, post(BODY, method: "GET")
    assert_equal 413, post("x" * 1_100_000)
    assert_empty @events
  end

  def test_other_paths_are_the_applications
    assert_equal 200, post(BODY, path: "/other")
    assert_empty @events
  end

  def test_an_error_of_the_block_is_the_applications
    assert_raises(RuntimeError) { post(BODY.sub("evt_1", "evt_bad")) }
  end

  def test_a_secret_that_is_missing
    assert_raises(ArgumentError) { Postroad::WebhookReceiver.new(nil, path: "/", secret: nil) { nil } }
    assert_raises(ArgumentError) { Postroad::WebhookReceiver.new(nil, path: "/", secret: "") { nil } }
    assert_raises(ArgumentError) { Postroad::WebhookReceiver.new(nil, path: "/", secret: SECRET) }
    refute_includes @application.inspect, SECRET
  end
end
