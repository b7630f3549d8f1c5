# frozen_string_literal: true

# Delivery by Action Mailer: require "postroad/action_mailer", then
#
#   config.action_mailer.delivery_method = :postroad
#   config.action_mailer.postroad_settings = { base_url: "https://mail.example.com", token: ENV["POSTROAD_API_KEY"] }

require "json"
require "postroad"

module Postroad
  # Sends a Mail::Message. Header fields say what a mail has no place for, with the names that Postroad knows over SMTP:
  # X-Service-Tag, X-Service-Metadata-…, X-Service-Template, X-Service-Variables and Idempotency-Key.
  class DeliveryMethod
    # Postroad writes these itself, or reads them from members of the request.
    OWN = %w[from to cc bcc reply-to subject date message-id mime-version return-path sender].freeze
    METADATA = "x-service-metadata-"
    private_constant :OWN, :METADATA

    # The settings, and the Postroad::Client that they make.
    attr_reader :settings, :client

    # base_url and the options of Postroad::Client; or client, to share one.
    def initialize(settings)
      @settings = settings
      options = settings.to_h.transform_keys(&:to_sym)
      @client = options.delete(:client) || Client.new(options.delete(:base_url), **options)
    end

    # Gives the Receipt, or raises a Postroad::Error.
    def deliver!(mail)
      fields = mail.header.fields.map { |field| [field.name, field.decoded.to_s] }
      @client.deliver(email(mail, fields), idempotency_key: value(fields, "idempotency-key"))
    end

    private

    def email(mail, fields)
      template = value(fields, "x-service-template")
      variables = value(fields, "x-service-variables")
      Email.new(
        from: addresses(mail[:from])&.first, to: addresses(mail[:to]) || [], cc: addresses(mail[:cc]),
        bcc: addresses(mail[:bcc]), reply_to: one_or_several(addresses(mail[:reply_to])), subject: mail.subject,
        **(template ? { template: template } : bodies(mail)),
        variables: variables && JSON.parse(variables), headers: headers(fields),
        tags: filled(fields.filter_map { |name, text| text if name.casecmp?("x-service-tag") }),
        metadata: metadata(fields), attachments: filled(mail.attachments.map { |part| attachment(part) })
      )
    end

    def addresses(field)
      filled(field.addrs.map(&:decoded)) if field
    end

    def one_or_several(addresses)
      addresses&.one? ? addresses.first : addresses
    end

    # Of several parts those that are no files; of a mail of one part the body.
    def bodies(mail)
      text = mail.multipart? ? mail.text_part : (mail unless mail.mime_type == "text/html")
      html = mail.multipart? ? mail.html_part : (mail if mail.mime_type == "text/html")
      { text: text&.decoded, html: html&.decoded }
    end

    def headers(fields)
      filled(fields.reject { |name, _| own?(name.downcase) }.to_h)
    end

    def own?(name)
      OWN.include?(name) || name == "idempotency-key" || name.start_with?("content-", "x-service-")
    end

    def metadata(fields)
      named = fields.select { |name, _| name.downcase.start_with?(METADATA) }
      filled(named.to_h { |name, text| [name[METADATA.size..], text] })
    end

    def attachment(part)
      Attachment.new(filename: part.filename, bytes: part.body.decoded, content_type: part.mime_type,
                     content_id: (part.cid if part.inline?))
    end

    def value(fields, wanted)
      fields.find { |name, _| name.casecmp?(wanted) }&.last
    end

    def filled(collection)
      collection unless collection.empty?
    end
  end
end

if defined?(ActiveSupport.on_load)
  ActiveSupport.on_load(:action_mailer) { add_delivery_method :postroad, Postroad::DeliveryMethod }
end
