// The one error of requests.

package postroad

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The codes that are the client's own, beside those of Postroad.
const (
	codeConnectionFailed   = "connection_failed"
	codeTimedOut           = "timed_out"
	codeUnexpectedResponse = "unexpected_response"
)

// Error is everything that may go wrong with a request; errors.As finds it. Bad arguments are plain errors.
type Error struct {
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Code is that of the answer, or connection_failed, timed_out, or unexpected_response for an answer that Postroad does not give.
	Code string
	// Message is for people.
	Message string
	// RequestID is what the operator of the server finds the request by; empty when there was no answer.
	RequestID string
	// RetryAfter is how long the server asked to wait; 0 when it did not.
	RetryAfter time.Duration
	// IdempotencyKey is the key of the send, to repeat it with later; empty for Get.
	IdempotencyKey string

	attempts int
	cause    error
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("postroad: ")
	if e.Status != 0 {
		fmt.Fprintf(&text, "%d ", e.Status)
	}
	fmt.Fprintf(&text, "%s: %s", e.Code, e.Message)
	if e.RequestID != "" {
		fmt.Fprintf(&text, " (%s)", e.RequestID)
	}
	if e.attempts > 1 {
		fmt.Fprintf(&text, " (%d attempts)", e.attempts)
	}
	return text.String()
}

// Unwrap gives what lay behind a failed connection: context.Canceled, a *net.OpError, a certificate's error and the like.
func (e *Error) Unwrap() error { return e.cause }

// IsRetryable tells whether the same call, with the same key, may succeed later.
func (e *Error) IsRetryable() bool {
	switch e.Code {
	case "idempotency_in_progress", codeConnectionFailed, codeTimedOut:
		return true
	}
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// IsInsufficientCredits tells whether the account has too few credits for the recipients.
func (e *Error) IsInsufficientCredits() bool { return e.Code == "insufficient_credits" }

// IsIdempotencyConflict tells whether the key was used before, with another email.
func (e *Error) IsIdempotencyConflict() bool { return e.Code == "idempotency_conflict" }
