# frozen_string_literal: true

require_relative "helper"
require "postroad/action_mailer"
require "postroad/rack"

# The RBS signatures name what the classes have.
class SignaturesTest < Minitest::Test
  SIGNATURES = File.read(File.expand_path("../sig/postroad.rbs", __dir__))

  def signature(type)
    SIGNATURES[/^  (class|module) #{type}\b.*?^  end$/m]
  end

  def test_members_of_values
    %i[Email Attachment Receipt AttachmentInfo Message Recipient Event EventData].each do |type|
      assert_equal Postroad.const_get(type).members, signature(type).scan(/attr_reader (\w+):/).flatten.map(&:to_sym), type
    end
  end

  def test_methods_of_the_others
    { Client: %i[deliver deliver_batch deliver_template_batch get wait reschedule cancel statistics messages templates
                 suppressions domains webhooks api_keys account],
      Messages: %i[list get retry], Templates: %i[list get save delete preview],
      Suppressions: %i[list create get delete], Domains: %i[list create get check rotate_key delete],
      Webhooks: %i[list create get update delete rotate_secret ping deliveries get_delivery replay
                   replay_failed],
      ApiKeys: %i[list create update revoke],
      TimedOutError: %i[last_message], Error: %i[code idempotency_key request_id retry_after status retryable? insufficient_credits?
                                         idempotency_conflict?] }.each do |type, methods|
      signed = signature(type).scan(/(?:def|attr_reader) ([\w?]+):/).flatten.map(&:to_sym) - [:initialize]
      assert_equal methods.sort, signed.sort, type
      assert_equal methods.sort, Postroad.const_get(type).public_instance_methods(false).sort - [:inspect], type
    end
  end

  def test_what_is_public
    assert_equal SIGNATURES.scan(/^  (?:class |module |)([A-Z]\w+)/).flatten.sort, Postroad.constants.map(&:to_s).sort
  end
end
