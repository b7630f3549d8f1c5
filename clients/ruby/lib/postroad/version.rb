# frozen_string_literal: true

module Postroad
  VERSION = "0.1.0"
end
