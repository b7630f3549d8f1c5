# frozen_string_literal: true

# The client library of Postroad: send mail, read its delivery status, verify webhooks.

require_relative "postroad/version"
require_relative "postroad/text"
require_relative "postroad/clock"
require_relative "postroad/arguments"
require_relative "postroad/error"
require_relative "postroad/attachment"
require_relative "postroad/email"
require_relative "postroad/members"
require_relative "postroad/receipt"
require_relative "postroad/message"
require_relative "postroad/event"
require_relative "postroad/retry_after"
require_relative "postroad/answer"
require_relative "postroad/credential"
require_relative "postroad/connection"
require_relative "postroad/connection_pool"
require_relative "postroad/transport"
require_relative "postroad/retries"
require_relative "postroad/api"
require_relative "postroad/resources"
require_relative "postroad/client"
require_relative "postroad/webhook"

module Postroad
  private_constant :Text, :Clock, :Arguments, :Members, :RetryAfter, :Answer, :Credential, :Connection, :ConnectionPool,
                   :Transport, :Retries, :Api
end
