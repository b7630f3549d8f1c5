# frozen_string_literal: true

module Postroad
  # What became of an email for one of its addresses. delivered_at and bounced_at are a Time, or nil. queue is a
  # Hash that says when it is tried next, where it was asked for.
  Recipient = Struct.new(:id, :email, :status, :billing_status, :attempt_count, :last_smtp_code, :last_smtp_response,
                         :delivered_at, :bounced_at, :queue, keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        id: members.string("id"),
        email: members.string("email"),
        status: members.string("status"),
        billing_status: members.string("billing_status"),
        attempt_count: members.integer("attempt_count"),
        last_smtp_code: members.integer("last_smtp_code"),
        last_smtp_response: members.string("last_smtp_response"),
        delivered_at: members.time("delivered_at"),
        bounced_at: members.time("bounced_at"),
        queue: members.hash("queue")
      ).freeze
    end

    # Whether the status is one that does not change any more.
    def final?
      %w[delivered bounced failed canceled expired].include?(status)
    end
  end

  # An email as the server knows it. It is "queued" until every recipient has a result, then "delivered", "partial" or
  # "failed". created_at is a Time.
  Message = Struct.new(:id, :status, :source, :from, :subject, :billing_status, :recipient_count, :credits_reserved,
                       :created_at, :recipients, :request_id, :send_at, :expires_at, :metadata, :test, keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        id: members.required_string("id"),
        status: members.required_string("status"),
        source: members.string("source"),
        from: members.string("from"),
        subject: members.string("subject"),
        billing_status: members.string("billing_status"),
        recipient_count: members.integer("recipient_count"),
        credits_reserved: members.integer("credits_reserved"),
        created_at: members.time("created_at"),
        recipients: members.objects("recipients") { |each| Recipient.read(each) },
        request_id: members.string("request_id"),
        send_at: members.time("send_at"),
        expires_at: members.time("expires_at"),
        metadata: members.string_map("metadata"),
        test: members.flag("test")
      ).freeze
    end

    # Whether every recipient has a final status.
    def final?
      recipients.any? && recipients.all?(&:final?)
    end
  end
end
