// Webhooks as a handler of net/http.

package postroad

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	maxEvent         = 1 << 20 // Bytes of a webhook; Postroad's have a few hundred.
	defaultTolerance = 5 * time.Minute
)

// WebhookHandler receives webhooks: it verifies each request with the secrets, of which one must match, and gives its event to the
// function. It responds 204; 400 to what Postroad has not signed; and 500 when the function returns an error, so that Postroad sends
// the event again.
func WebhookHandler(secrets []string, receive func(context.Context, *Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
		if err != nil {
			w.WriteHeader(unreadable(err))
			return
		}
		event, err := ParseEvent(body, r.Header.Get("Service-Signature"), secrets, defaultTolerance)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if receive(r.Context(), event) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func unreadable(err error) int {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}
