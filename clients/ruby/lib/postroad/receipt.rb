# frozen_string_literal: true

module Postroad
  # What the server says of an attachment that it took.
  AttachmentInfo = Struct.new(:filename, :content_type, :size, :content_id, keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        filename: members.string("filename"),
        content_type: members.string("content_type"),
        size: members.integer("size"),
        content_id: members.string("content_id")
      ).freeze
    end
  end

  # The answer to a send: the email is accepted and stored, not yet delivered.
  Receipt = Struct.new(:id, :status, :source, :request_id, :from, :to, :cc, :bcc, :reply_to, :subject, :billing_status,
                       :recipient_count, :credits_reserved, :headers, :tags, :attachments, :send_at, :expires_at, :metadata,
                       keyword_init: true) do
    def self.read(members) # :nodoc:
      new(
        id: members.required_string("id"),
        status: members.string("status"),
        source: members.string("source"),
        request_id: members.string("request_id"),
        from: members.string("from"),
        to: members.strings("to"),
        cc: members.strings("cc"),
        bcc: members.strings("bcc"),
        reply_to: members.string_or_strings("reply_to"),
        subject: members.string("subject"),
        billing_status: members.string("billing_status"),
        recipient_count: members.integer("recipient_count"),
        credits_reserved: members.integer("credits_reserved"),
        headers: members.string_map("headers"),
        tags: members.strings("tags"),
        attachments: members.objects("attachments") { |each| AttachmentInfo.read(each) },
        send_at: members.time("send_at"),
        expires_at: members.time("expires_at"),
        metadata: members.string_map("metadata")
      ).freeze
    end
  end
end
