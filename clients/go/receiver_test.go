package postroad

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWebhookHandler(t *testing.T) {
	var ids []string
	handler := WebhookHandler([]string{"whsec_old", "whsec_1"}, func(_ context.Context, event *Event) error {
		if event.ID == "evt_bad" {
			return errors.New("the database is away")
		}
		ids = append(ids, event.ID)
		return nil
	})
	body, bad := `{"id": "evt_1", "type": "email.delivered"}`, `{"id": "evt_bad", "type": "email.delivered"}`
	for _, test := range []struct {
		method, body, signed string
		status               int
	}{
		{http.MethodPost, body, body, 204},
		{http.MethodPost, body + " ", body, 400},
		{http.MethodPost, "[]", "[]", 400},
		{http.MethodPost, bad, bad, 500},
		{http.MethodPost, strings.Repeat("x", maxEvent+1), body, 413},
		{http.MethodGet, "", "", 405},
	} {
		now := time.Now().Unix()
		mac := hmac.New(sha256.New, []byte("whsec_1"))
		fmt.Fprintf(mac, "%d.%s", now, test.signed)
		request := httptest.NewRequest(test.method, "/", strings.NewReader(test.body))
		request.Header.Set("Service-Signature", fmt.Sprintf("t=%d,v1=%x", now, mac.Sum(nil)))
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != test.status {
			t.Errorf("%s %.60s: came %d", test.method, test.body, response.Code)
		}
	}
	if len(ids) != 1 || ids[0] != "evt_1" {
		t.Errorf("came %v", ids)
	}
}
