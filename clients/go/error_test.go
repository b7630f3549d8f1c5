// Which kind an error is of.

package postroad

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestKinds(t *testing.T) {
	for _, try := range []struct {
		status int
		body   string
		kind   Kind
		target error
	}{
		{400, `{"code": "invalid_request"}`, "invalid_request", ErrInvalidRequest},
		{408, `<html>`, "invalid_request", ErrInvalidRequest},
		{413, `{"code": "payload_too_large"}`, "invalid_request", ErrInvalidRequest},
		{415, `{"code": "invalid_request"}`, "invalid_request", ErrInvalidRequest},
		{422, `{"code": "invalid_request"}`, "invalid_request", ErrInvalidRequest},
		{401, `{"code": "unauthorized"}`, "authentication", ErrAuthentication},
		{402, `{"code": "insufficient_credits"}`, "insufficient_credits", ErrInsufficientCredits},
		{403, `{"code": "insufficient_credits"}`, "insufficient_credits", ErrInsufficientCredits},
		{402, `<html>`, "insufficient_credits", ErrInsufficientCredits},
		{403, `{"code": "account_suspended"}`, "permission_denied", ErrPermissionDenied},
		{404, `{"code": "not_found"}`, "not_found", ErrNotFound},
		{409, `{"code": "idempotency_conflict"}`, "idempotency", ErrIdempotency},
		{409, `{"code": "idempotency_in_progress"}`, "idempotency", ErrIdempotency},
		{429, `{"code": "rate_limited"}`, "rate_limited", ErrRateLimited},
		{500, `{"code": "internal_error"}`, "server", ErrServer},
		{502, `<html>`, "server", ErrServer},
		{503, `{"code": "timed_out"}`, "server", ErrServer},
		{599, ``, "server", ErrServer},
		{200, `<html>`, "unexpected_response", ErrUnexpectedResponse},
		{302, ``, "unexpected_response", ErrUnexpectedResponse},
	} {
		baseURL, _ := record(t, answerWith(try.status, try.body))
		_, err := newClient(t, baseURL, WithMaxElapsed(0)).Send(context.Background(), hello)
		var failure *Error
		if !errors.As(fmt.Errorf("wrapped: %w", err), &failure) || failure.Kind() != try.kind || !errors.Is(err, try.target) {
			t.Errorf("%d %s: %v", try.status, try.body, err)
		}
		if errors.Is(err, ErrTimedOut) || errors.Is(err, ErrSignature) {
			t.Errorf("%d %s is two kinds", try.status, try.body)
		}
	}
}

func TestKindsWithoutAResponse(t *testing.T) {
	ctx := context.Background()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // It accepts, and says nothing.
	silent := newClient(t, "http://"+listener.Addr().String(), WithTimeout(20*time.Millisecond), WithMaxElapsed(0))
	if _, err := silent.Get(ctx, "em_1"); !errors.Is(err, ErrTimedOut) {
		t.Errorf("silence: %v", err)
	}
	baseURL, _ := record(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := newClient(t, baseURL, WithMaxElapsed(0)).Get(ctx, "em_1"); !errors.Is(err, ErrConnectionFailed) {
		t.Errorf("a broken connection: %v", err)
	}
	baseURL, _ = script(t, []string{"220 mail.example.com ESMTP\r\n"})
	if _, err := newClient(t, baseURL).Get(ctx, "em_1"); !errors.Is(err, ErrUnexpectedResponse) {
		t.Errorf("another protocol: %v", err)
	}
}

func TestAKindReadsAsAnError(t *testing.T) {
	if got := ErrRateLimited.Error(); got != "postroad: rate limited" {
		t.Errorf("got %s", got)
	}
}
