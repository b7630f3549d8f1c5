# frozen_string_literal: true

module Postroad
  # Resources of the account. They give the objects of the API as Hashes with String keys; a list reads its pages as you
  # go through it. Filters and settings have the names of the API.
  class Resource
    def initialize(api) # :nodoc:
      @api = api
      freeze
    end

    # Without the credential.
    def inspect
      "#<#{self.class.name}>"
    end

    private

    def path(*names)
      names.map { |name| "/#{Api.segment(name)}" }.join
    end
  end
  private_constant :Resource

  # The message log. Reading it needs the scope read.
  class Messages < Resource
    # The messages that match, newest first: by status, source, from, to, tag, metadata, after, before and mode.
    def list(**filters)
      @api.each("/v1/messages", "messages", filters)
    end

    # One message with all its attempts.
    def get(id)
      @api.call(:get, "/v1/messages#{path(id)}")
    end

    # Retries the waiting recipients now, or one of them.
    def retry(id, recipient_id: nil)
      @api.call(:post, "/v1/messages#{path(id)}/retry", body: { recipient_id: recipient_id }.compact)
    end
  end

  # Templates of mail.
  class Templates < Resource
    # All templates, without their bodies.
    def list(**filters)
      @api.each("/v1/templates", "templates", filters)
    end

    def get(alias_name)
      @api.call(:get, "/v1/templates#{path(alias_name)}", member: "template")
    end

    # Creates the template, or changes it.
    def save(alias_name, subject:, text: nil, html: nil)
      body = { subject: subject, text: text, html: html }.compact
      @api.call(:put, "/v1/templates#{path(alias_name)}", body: body, member: "template")
    end

    def delete(alias_name)
      @api.call(:delete, "/v1/templates#{path(alias_name)}")
      nil
    end

    # What a mail with these values would say: subject, text and html.
    def preview(alias_name, variables: {})
      @api.call(:post, "/v1/templates#{path(alias_name)}/preview", body: { variables: variables }, repeatable: true)
    end
  end

  # Addresses that get no mail from the account.
  class Suppressions < Resource
    # The suppressed addresses in alphabetical order: by email and source.
    def list(**filters)
      @api.each("/v1/suppressions", "suppressions", filters)
    end

    def create(email:, reason: nil)
      @api.call(:post, "/v1/suppressions", body: { email: email, reason: reason }.compact, member: "suppression")
    end

    # Why an address is suppressed.
    def get(email)
      @api.call(:get, "/v1/suppressions#{path(email)}", member: "suppression")
    end

    def delete(email)
      @api.call(:delete, "/v1/suppressions#{path(email)}")
      nil
    end
  end

  # Sender domains.
  class Domains < Resource
    # All domains, without their DNS records.
    def list(**filters)
      @api.each("/v1/domains", "domains", filters)
    end

    # Registers a domain; its records say what to put into DNS.
    def create(name:)
      @api.call(:post, "/v1/domains", body: { name: name }, member: "domain")
    end

    def get(id)
      @api.call(:get, "/v1/domains#{path(id)}", member: "domain")
    end

    # Checks its DNS records now.
    def check(id)
      @api.call(:post, "/v1/domains#{path(id)}/check", member: "domain", repeatable: true)
    end

    # Makes a new DKIM key, which signs as soon as its record is found.
    def rotate_key(id)
      @api.call(:post, "/v1/domains#{path(id)}/rotate-key", member: "domain")
    end

    def delete(id)
      @api.call(:delete, "/v1/domains#{path(id)}")
      nil
    end
  end

  # The webhooks of the account. These are their settings; Postroad::Webhook verifies what they send.
  class Webhooks < Resource
    # All webhooks, the first one first.
    def list
      @api.each("/v1/webhooks", "webhooks", {})
    end

    # Creates one: its "webhook", and its "secret", which is never shown again.
    def create(url:, **settings)
      @api.call(:post, "/v1/webhooks", body: { url: url, **settings })
    end

    def get(id)
      @api.call(:get, "/v1/webhooks#{path(id)}", member: "webhook")
    end

    # Changes what is given: url, events, enabled, tags and so on.
    def update(id, **settings)
      @api.call(:patch, "/v1/webhooks#{path(id)}", body: settings, member: "webhook")
    end

    # Removes it, and what it has not sent yet.
    def delete(id)
      @api.call(:delete, "/v1/webhooks#{path(id)}")
      nil
    end

    # A new secret. With an overlap, the old one signs as well for so many hours.
    def rotate_secret(id, overlap_hours: nil)
      body = { overlap_hours: overlap_hours }.compact
      @api.call(:post, "/v1/webhooks#{path(id)}/rotate-secret", body: body, member: "secret")
    end

    # Sends a test event now, and gives its delivery.
    def ping(id)
      @api.call(:post, "/v1/webhooks#{path(id)}/ping", member: "delivery")
    end

    # Its deliveries of the last 7 days, newest first: by message_id and status.
    def deliveries(id, **filters)
      @api.each("/v1/webhooks#{path(id)}/deliveries", "deliveries", filters)
    end

    # One delivery with every attempt.
    def get_delivery(id, delivery_id)
      @api.call(:get, "/v1/webhooks#{path(id)}/deliveries#{path(delivery_id)}", member: "delivery")
    end

    # Sends the event of a delivery again.
    def replay(id, delivery_id)
      @api.call(:post, "/v1/webhooks#{path(id)}/deliveries#{path(delivery_id)}/replay", member: "delivery")
    end

    # Sends the failed events of a period again: after and before.
    def replay_failed(id, **period)
      @api.call(:post, "/v1/webhooks#{path(id)}/deliveries/replay", body: period)
    end
  end

  # Keys for programs, with scopes.
  class ApiKeys < Resource
    # All keys, oldest first, without the keys themselves.
    def list(**filters)
      @api.each("/v1/api-keys", "api_keys", filters)
    end

    # Creates one: its "api_key", and the "secret", which is never shown again.
    def create(name:, **settings)
      @api.call(:post, "/v1/api-keys", body: { name: name, **settings })
    end

    # Changes its name, scopes or limits.
    def update(id, **settings)
      @api.call(:patch, "/v1/api-keys#{path(id)}", body: settings, member: "api_key")
    end

    def revoke(id)
      @api.call(:delete, "/v1/api-keys#{path(id)}")
      nil
    end
  end
end
