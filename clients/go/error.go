// The error of requests, its kinds and its codes.

package postroad

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The codes of Postroad, in Error.Code. A later version may have more.
const (
	CodeInvalidRequest        = "invalid_request"
	CodeUnauthorized          = "unauthorized"
	CodeForbidden             = "forbidden"
	CodeNotFound              = "not_found"
	CodeConflict              = "conflict"
	CodeInsufficientCredits   = "insufficient_credits"
	CodeRateLimited           = "rate_limited"
	CodeWarmupLimited         = "warmup_limited"
	CodeAccountSuspended      = "account_suspended"
	CodePayloadTooLarge       = "payload_too_large"
	CodeServiceUnavailable    = "service_unavailable"
	CodeTemporaryFailure      = "temporary_failure"
	CodeInternalError         = "internal_error"
	CodeIdempotencyConflict   = "idempotency_conflict"
	CodeIdempotencyInProgress = "idempotency_in_progress"
)

// The codes that are the client's own.
const (
	CodeConnectionFailed   = "connection_failed"
	CodeTimedOut           = "timed_out"
	CodeUnexpectedResponse = "unexpected_response" // A response that Postroad does not give, such as the page of a proxy.
	CodeInvalidSignature   = "invalid_signature"   // Of ParseEvent.
)

// Kind is what an application can do something about. It is an error itself, so that errors.Is(err, ErrRateLimited) tells one
// kind from the others.
type Kind string

// Error makes a Kind an error that errors.Is can look for.
func (k Kind) Error() string { return "postroad: " + strings.ReplaceAll(string(k), "_", " ") }

// The kinds of errors.
const (
	KindInvalidRequest      Kind = "invalid_request" // 400, 413, 422 and every other 4xx that is not below.
	KindAuthentication      Kind = "authentication"  // 401
	KindInsufficientCredits Kind = "insufficient_credits"
	KindPermissionDenied    Kind = "permission_denied" // 403
	KindNotFound            Kind = "not_found"
	KindIdempotency         Kind = "idempotency" // 409: the key belongs to another email, or to a send in progress.
	KindRateLimited         Kind = "rate_limited"
	KindServer              Kind = "server" // 5xx, also as the page of a proxy.
	KindConnectionFailed    Kind = "connection_failed"
	KindTimedOut            Kind = "timed_out"
	KindUnexpectedResponse  Kind = "unexpected_response" // A 2xx, 3xx or something that is not HTTP, and not from Postroad.
	KindSignature           Kind = "signature"           // Of ParseEvent.
)

// The kinds as targets of errors.Is.
const (
	ErrInvalidRequest      = KindInvalidRequest
	ErrAuthentication      = KindAuthentication
	ErrInsufficientCredits = KindInsufficientCredits
	ErrPermissionDenied    = KindPermissionDenied
	ErrNotFound            = KindNotFound
	ErrIdempotency         = KindIdempotency
	ErrRateLimited         = KindRateLimited
	ErrServer              = KindServer
	ErrConnectionFailed    = KindConnectionFailed
	ErrTimedOut            = KindTimedOut
	ErrUnexpectedResponse  = KindUnexpectedResponse
	ErrSignature           = KindSignature
)

// Error is everything that may go wrong with a request; errors.As finds it. Bad arguments are plain errors.
type Error struct {
	// Status is the HTTP status; 0 when there was no response.
	Status int
	// Code is that of the response, or one of the client's own: CodeConnectionFailed, CodeTimedOut, CodeUnexpectedResponse.
	Code string
	// Message is for people.
	Message string
	// RequestID is what the operator of the server finds the request by; empty when there was no response.
	RequestID string
	// RetryAfter is how long the server asked to wait; 0 when it did not.
	RetryAfter time.Duration
	// IdempotencyKey is the key of the send, to repeat it with later; empty for Get and Wait.
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

// kindsOfStatus has the statuses that are a kind of their own.
var kindsOfStatus = map[int]Kind{
	http.StatusUnauthorized:    KindAuthentication,
	http.StatusPaymentRequired: KindInsufficientCredits,
	http.StatusForbidden:       KindPermissionDenied,
	http.StatusNotFound:        KindNotFound,
	http.StatusConflict:        KindIdempotency,
	http.StatusTooManyRequests: KindRateLimited,
}

// kindsOfCode has the codes that decide when there is no status.
var kindsOfCode = map[string]Kind{
	CodeConnectionFailed: KindConnectionFailed,
	CodeTimedOut:         KindTimedOut,
	CodeInvalidSignature: KindSignature,
}

// Kind follows from Status and Code.
func (e *Error) Kind() Kind {
	ofStatus, hasStatus := kindsOfStatus[e.Status]
	ofCode, hasCode := kindsOfCode[e.Code]
	switch {
	case e.Code == CodeInsufficientCredits:
		return KindInsufficientCredits
	case hasStatus:
		return ofStatus
	case e.Status >= 400 && e.Status < 500:
		return KindInvalidRequest
	case e.Status >= 500 && e.Status < 600:
		return KindServer
	case e.Status == 0 && hasCode:
		return ofCode
	}
	return KindUnexpectedResponse
}

// Is tells whether the error is of this Kind; errors.Is asks it.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind()
}

// Unwrap gives what lay behind a failed connection: context.Canceled, a *net.OpError, a certificate's error and the like.
func (e *Error) Unwrap() error { return e.cause }

// IsRetryable tells whether the same call, with the same key, may succeed later.
func (e *Error) IsRetryable() bool {
	switch e.Code {
	case CodeIdempotencyInProgress, CodeConnectionFailed, CodeTimedOut:
		return true
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// IsInsufficientCredits tells whether the account has too few credits for the recipients.
func (e *Error) IsInsufficientCredits() bool { return e.Code == CodeInsufficientCredits }

// IsIdempotencyConflict tells whether the key was used before, with another email.
func (e *Error) IsIdempotencyConflict() bool { return e.Code == CodeIdempotencyConflict }
