# frozen_string_literal: true

module Postroad
  # What an Event is about: the recipient and the result. What is not known is nil; test is true in "webhook.test" only.
  EventData = Struct.new(:email_id, :recipient_id, :to, :from, :subject, :smtp_code, :smtp_response, :test,
                         keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        email_id: members.string("email_id"),
        recipient_id: members.string("recipient_id"),
        to: members.string("to"),
        from: members.string("from"),
        subject: members.string("subject"),
        smtp_code: members.integer("smtp_code"),
        smtp_response: members.string("smtp_response"),
        test: members.flag("test")
      ).freeze
    end
  end

  # What a webhook tells: the result of one recipient. The type is "email.delivered", "email.bounced", "email.failed" or
  # "webhook.test". The same id can come twice. created_at is a Time.
  Event = Struct.new(:id, :type, :created_at, :data, keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        id: members.required_string("id"),
        type: members.required_string("type"),
        created_at: members.time("created_at"),
        data: EventData.read(members.object("data"))
      ).freeze
    end
  end
end
