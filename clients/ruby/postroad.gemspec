# frozen_string_literal: true

require_relative "lib/postroad/version"

Gem::Specification.new do |spec|
  spec.name = "postroad"
  spec.version = Postroad::VERSION
  spec.summary = "Client of Postroad, the transactional email service that you run yourself"
  spec.description = "Sends mail through Postroad, reads what became of it, and verifies its webhooks. Standard library only."
  spec.authors = ["The Postroad contributors"]
  spec.license = "Apache-2.0"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "sig/*.rbs", "README.md", "LICENSE"] }
end
