# frozen_string_literal: true

require "securerandom"

module Postroad
  # Makes the requests of all operations: paths, queries, bodies, the credential, and the retries that each may have.
  class Api
    ID = /\A[A-Za-z0-9_-]+\z/
    METHODS = {
      get: Net::HTTP::Get, post: Net::HTTP::Post, put: Net::HTTP::Put, patch: Net::HTTP::Patch, delete: Net::HTTP::Delete
    }.freeze
    # The members that lead to the next page, and the filters that they become.
    NEXT_PAGES = { "next_cursor" => :cursor, "next_before" => :before }.freeze
    private_constant :ID, :METHODS, :NEXT_PAGES

    # Reads a response as the Hash that JSON makes of it, or one member of it, without which it is none of Postroad.
    Plain = Struct.new(:member) do
      def name
        "response"
      end

      def read(members)
        member ? members.required(member) : members.to_h
      end
    end
    private_constant :Plain

    def initialize(transport, authorization, retries, clock)
      @transport = transport
      @authorization = authorization
      @retries = retries
      @clock = clock
      freeze
    end

    # An id as a part of a path: nothing in it can lead to another path.
    def self.id(given)
      return given if given.is_a?(String) && given.ascii_only? && ID.match?(given)

      raise ArgumentError, "an id is letters, digits, _ and -, not #{given.inspect}"
    end

    # A name of any characters as a part of a path. One of "." or ".." is another path to whoever normalizes it.
    def self.segment(name)
      raise ArgumentError, "a name in a path is not empty, and not \".\" or \"..\"" if ["", ".", ".."].include?(name.to_s)

      URI.encode_www_form_component(name.to_s).gsub("+", "%20")
    end

    # A request and what its type reads of the response. A POST without a key is repeated only when it does no harm.
    def call(method, path, query: {}, body: nil, member: nil, type: Plain.new(member), repeatable: method != :post)
      json = body && self.class.json(body)
      exchange(type, method, path + self.class.query(query), json, {}, repeatable)
    end

    # A POST with a key: the caller's, or a new UUID.
    def send_with_key(path, body, key, type: Plain.new("results"))
      key = Credential.header_value("idempotency_key", key || SecureRandom.uuid)
      exchange(type, :post, path, self.class.json(body), { "Idempotency-Key" => key }, true, idempotency_key: key)
    end

    # The items of a list, page after page; the next page is read when it is needed.
    def each(path, name, query)
      Enumerator.new do |items|
        loop do
          page = call(:get, path, query: query)
          Array(page[name]).each { |item| items << item }
          following = NEXT_PAGES.find { |member, _| page[member] }
          break if following.nil?

          query = query.merge(following[1] => page[following[0]])
        end
      end
    end

    def self.query(members)
      members = members.compact.transform_values { |value| value.is_a?(Time) ? value.iso8601(3) : value }
      members.empty? ? "" : "?#{URI.encode_www_form(members).gsub("+", "%20")}"
    end

    def self.json(members)
      JSON.generate(members.transform_values { |value| value.is_a?(Time) ? value.iso8601(3) : value })
    rescue JSON::JSONError, EncodingError => e
      raise ArgumentError, "the email cannot be written as JSON: #{e.message}"
    end

    private

    def exchange(type, method, path, body, headers, repeatable, **context)
      headers = common_headers.merge(headers)
      headers["Content-Type"] = "application/json" if body || method == :post # net/http would name another one
      @retries.run(repeatable: repeatable) do |attempt, seconds|
        response = @transport.call(METHODS.fetch(method), path, headers, body, seconds)
        Answer.new(response, now: @clock.time, attempts: attempt, **context).value(type)
      rescue Transport::Failure => e
        raise Error.of(e.message, code: e.code, attempts: attempt, **context), cause: e.cause
      end
    end

    def common_headers
      {
        "Authorization" => @authorization,
        "Accept" => "application/json",
        "Accept-Encoding" => "identity",
        "User-Agent" => "postroad-ruby/#{VERSION}"
      }
    end
  end
end
