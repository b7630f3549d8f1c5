// The words of the interface for statuses and events.

package postroad

// Values of Message.Status. A later version may have more.
const (
	MessageQueued    = "queued" // At least one recipient has no final status.
	MessageDelivered = "delivered"
	MessagePartial   = "partial"
	MessageFailed    = "failed"
)

// Values of Recipient.Status. A later version may have more.
const (
	RecipientQueued    = "queued"
	RecipientDeferred  = "deferred"
	RecipientDelivered = "delivered"
	RecipientBounced   = "bounced"
	RecipientFailed    = "failed"
	RecipientCanceled  = "canceled"
	RecipientExpired   = "expired"
)

// Values of Event.Type. A later version may have more.
const (
	EventDelivered = "email.delivered"
	EventBounced   = "email.bounced"
	EventFailed    = "email.failed"
	EventTest      = "webhook.test"

	// Sent only to endpoints that name them.
	EventAccepted         = "email.accepted"
	EventDeferred         = "email.deferred"
	EventComplained       = "email.complained"
	EventBouncedLater     = "email.bounced_later"
	EventSuppressed       = "email.suppressed"
	EventExpired          = "email.expired"
	EventCanceled         = "email.canceled"
	EventDomainVerified   = "domain.verified"
	EventDomainFailing    = "domain.failing"
	EventAccountWarned    = "account.warned"
	EventAccountSuspended = "account.suspended"
	EventCreditsLow       = "credits.low"
)
