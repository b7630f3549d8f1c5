# frozen_string_literal: true

module Postroad
  # Makes the header Authorization, and sees to it that no header can be broken by its value.
  module Credential
    module_function

    def authorization(username, password, token)
      given = [username, password, token].map { |part| !part.nil? }
      case given
      when [false, false, true] then "Bearer #{header_value("token", token)}"
      when [true, true, false] then basic(username, password)
      else raise ArgumentError, "give either a token, or a username and a password"
      end
    end

    # The value itself, when it may stand in a header.
    def header_value(name, value)
      raise ArgumentError, "#{name} must be a String, not #{value.class}" unless value.is_a?(String)

      printable = value.ascii_only? && value.match?(/\A[ -~]+\z/)
      raise ArgumentError, "#{name} must be printable ASCII, and not empty" unless printable

      value
    end

    def basic(username, password)
      raise ArgumentError, "username and password must be Strings" unless [username, password].all?(String)
      raise ArgumentError, "username and password must not be empty" if username.empty? || password.empty?
      raise ArgumentError, "username has a colon" if username.include?(":")

      # Their bytes: without a locale, Ruby does not know the encoding of the environment's variables.
      "Basic #{["#{username.b}:#{password.b}"].pack("m0")}"
    end
  end
end
