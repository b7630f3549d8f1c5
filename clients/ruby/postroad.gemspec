# frozen_string_literal: true

require_relative "lib/postroad/version"

Gem::Specification.new do |spec|
  repository = "https://github.com/postroad/postroad"

  spec.name = "postroad"
  spec.version = Postroad::VERSION
  spec.summary = "Client of Postroad, the transactional email service that you run yourself"
  spec.description = "Sends mail through Postroad, reads its delivery status, and verifies its webhooks. Standard library only."
  spec.authors = ["The Postroad contributors"]
  spec.license = "Apache-2.0"
  spec.homepage = repository
  spec.metadata = {
    "source_code_uri" => "#{repository}/tree/main/clients/ruby",
    "changelog_uri" => "#{repository}/blob/main/clients/ruby/CHANGELOG.md",
    "bug_tracker_uri" => "#{repository}/issues",
    "rubygems_mfa_required" => "true"
  }
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "sig/*.rbs", "README.md", "CHANGELOG.md", "LICENSE"] }
end
