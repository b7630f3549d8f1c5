# frozen_string_literal: true

require "time"

module Postroad
  # The members of a JSON object that the server sent, each of the type that it should have. One that is missing or
  # null is nil, or an empty Array or Hash.
  class Members
    # Says which member is not what it should be.
    class WrongType < StandardError; end

    ZONE = /(Z|[+-]\d\d:\d\d)\z/i

    def initialize(object)
      raise WrongType, "it is not a JSON object" unless object.is_a?(Hash)

      @object = object
    end

    def required_string(name)
      value = string(name)
      value.nil? || value.empty? ? wrong(name, "missing") : value
    end

    def string(name)
      value = @object[name]
      value.nil? || value.is_a?(String) ? value : wrong(name, "not a string")
    end

    def integer(name)
      value = @object[name]
      value.nil? || value.is_a?(Integer) ? value : wrong(name, "not a whole number")
    end

    # false when it is missing.
    def flag(name)
      value = @object[name] || false
      [true, false].include?(value) ? value : wrong(name, "not true or false")
    end

    # Without a zone it is none: Ruby would take it for one of this machine's.
    def time(name)
      value = string(name)
      return if value.nil?

      value.match?(ZONE) ? Time.iso8601(value) : wrong(name, "not a time")
    rescue ArgumentError
      wrong(name, "not a time")
    end

    def strings(name)
      list(name).each { |value| wrong(name, "not a list of strings") unless value.is_a?(String) }
    end

    # A String, an Array of them, or nil.
    def string_or_strings(name)
      @object[name].is_a?(Array) ? strings(name) : string(name)
    end

    # A Hash of String to String.
    def string_map(name)
      value = @object[name] || {}
      value.is_a?(Hash) && value.each_value.all?(String) ? value.freeze : wrong(name, "not an object of strings")
    end

    # An object as a Hash; nil when it is missing.
    def hash(name)
      @object[name] && object(name).to_h
    end

    # Any value, if it is there.
    def required(name)
      @object.fetch(name) { wrong(name, "missing") }
    end

    # The object as it came.
    def to_h
      @object
    end

    # The members of an object inside this one.
    def object(name)
      value = @object[name] || {}
      value.is_a?(Hash) ? Members.new(value) : wrong(name, "not an object")
    end

    # What the block makes of the members of each object in a list.
    def objects(name)
      list(name).map { |object| yield Members.new(object) }.freeze
    end

    private

    def list(name)
      value = @object[name] || []
      value.is_a?(Array) ? value.freeze : wrong(name, "not a list")
    end

    def wrong(name, what)
      raise WrongType, "its #{name} is #{what}"
    end
  end
end
