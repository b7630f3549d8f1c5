// Every operation beside sending and reading: the request that it makes, and what it gives.

package postroad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const everything = `{"id": "em_1", "status": "queued", "results": [{"id": "em_1"}], "statistics": {"queued": 3},
	"template": {"alias": "welcome"}, "suppression": {"email": "ada@example.net"}, "domain": {"name": "example.com"},
	"webhook": {"id": "whk_1"}, "webhooks": [{"id": "whk_1"}], "delivery": {"id": "whd_1"}, "secret": "whsec_1",
	"messages": [{"id": "em_1"}], "templates": [{"alias": "welcome"}], "suppressions": [{"email": "ada@example.net"}],
	"domains": [{"id": "dom_1"}], "deliveries": [{"id": "whd_1"}], "api_keys": [{"id": "key_1"}], "api_key": {"id": "key_1"},
	"account": {"balance": 3}, "next_cursor": null}`

type operation func(context.Context, *Client) (any, error)

// deleted makes an operation of one that gives nothing.
func deleted(err error) (any, error) { return nil, err }

func TestOperations(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	email := Email{From: "a@example.com", To: []string{"b@example.net"}, SendAt: &noon, ExpiresIn: 120, Metadata: map[string]string{"order": "1"}}
	for _, test := range []struct {
		do                  operation
		line, body, printed string
	}{
		{func(x context.Context, c *Client) (any, error) { return c.SendBatch(x, Batch{Emails: []Email{email}}) }, "POST /emails/batch",
			`{"emails":[{"from":"a@example.com","to":["b@example.net"],"send_at":"2026-01-31T12:00:00Z","expires_in":120,"metadata":{"order":"1"}}]}`, "[{em_1 <nil>}]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.SendBatch(x, Batch{Emails: []Email{{Template: "welcome"}}, AllOrNothing: true})
		}, "POST /emails/batch", `{"emails":[{"template":"welcome"}],"all_or_nothing":true}`, "[{em_1 <nil>}]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.SendTemplateBatch(x, TemplateBatch{From: "a@example.com", Template: "welcome", Recipients: []BatchRecipient{{To: "b@example.net"}}, AllOrNothing: true})
		}, "POST /emails/batch", `{"from":"a@example.com","template":"welcome","recipients":[{"to":"b@example.net"}],"all_or_nothing":true}`, "[{em_1 <nil>}]"},
		{func(x context.Context, c *Client) (any, error) { return c.Reschedule(x, "em_1", &noon) }, "PATCH /emails/em_1", `{"send_at":"2026-01-31T12:00:00Z"}`, "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Reschedule(x, "em_1", nil) }, "PATCH /emails/em_1", `{"send_at":null}`, "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Cancel(x, "em_1") }, "POST /emails/em_1/cancel", "", "*"},
		{func(x context.Context, c *Client) (any, error) {
			message, err := c.GetWithQueue(x, "em_1")
			return message.ID, err
		}, "GET /emails/em_1?include=queue", "", "em_1"},
		{func(x context.Context, c *Client) (any, error) { return c.Statistics(x, "7d") }, "GET /v1/statistics?period=7d", "", "map[queued:3]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Messages().List(url.Values{"metadata": {"order:1 2"}}).Next(x)
		}, "GET /v1/messages?metadata=order%3A1%202", "", "map[id:em_1]"},
		{func(x context.Context, c *Client) (any, error) { return c.Messages().Get(x, "em_1") }, "GET /v1/messages/em_1", "", "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Messages().Retry(x, "em_1", "") }, "POST /v1/messages/em_1/retry", "{}", "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Messages().Retry(x, "em_1", "rcp_1") }, "POST /v1/messages/em_1/retry", `{"recipient_id":"rcp_1"}`, "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Templates().List(nil).Next(x) }, "GET /v1/templates", "", "map[alias:welcome]"},
		{func(x context.Context, c *Client) (any, error) { return c.Templates().Get(x, "a/b?") }, "GET /v1/templates/a%2Fb%3F", "", "map[alias:welcome]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Templates().Save(x, "welcome", Object{"subject": "Hi"})
		}, "PUT /v1/templates/welcome", `{"subject":"Hi"}`, "map[alias:welcome]"},
		{func(x context.Context, c *Client) (any, error) { return deleted(c.Templates().Delete(x, "welcome")) }, "DELETE /v1/templates/welcome", "", "<nil>"},
		{func(x context.Context, c *Client) (any, error) { return c.Templates().Preview(x, "welcome", nil) }, "POST /v1/templates/welcome/preview", `{"variables":{}}`, "*"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Suppressions().List(url.Values{"source": {"account"}}).Next(x)
		}, "GET /v1/suppressions?source=account", "", "map[email:ada@example.net]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Suppressions().Create(x, "ada@example.net", "asked")
		}, "POST /v1/suppressions", `{"email":"ada@example.net","reason":"asked"}`, "map[email:ada@example.net]"},
		{func(x context.Context, c *Client) (any, error) { return c.Suppressions().Get(x, "a/b@example.net") }, "GET /v1/suppressions/a%2Fb%40example.net", "", "map[email:ada@example.net]"},
		{func(x context.Context, c *Client) (any, error) {
			return deleted(c.Suppressions().Delete(x, "ada@example.net"))
		}, "DELETE /v1/suppressions/ada%40example.net", "", "<nil>"},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().List(nil).Next(x) }, "GET /v1/domains", "", "map[id:dom_1]"},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().Create(x, "example.com") }, "POST /v1/domains", `{"name":"example.com"}`, "map[name:example.com]"},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().Get(x, "dom_1") }, "GET /v1/domains/dom_1", "", "map[name:example.com]"},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().Check(x, "dom_1") }, "POST /v1/domains/dom_1/check", "", "map[name:example.com]"},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().RotateKey(x, "dom_1") }, "POST /v1/domains/dom_1/rotate-key", "", "map[name:example.com]"},
		{func(x context.Context, c *Client) (any, error) { return deleted(c.Domains().Delete(x, "dom_1")) }, "DELETE /v1/domains/dom_1", "", "<nil>"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().List().Next(x) }, "GET /v1/webhooks", "", "map[id:whk_1]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Webhooks().Create(x, Object{"url": "https://example.com"})
		}, "POST /v1/webhooks", `{"url":"https://example.com"}`, "*"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().Get(x, "whk_1") }, "GET /v1/webhooks/whk_1", "", "map[id:whk_1]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Webhooks().Update(x, "whk_1", Object{"enabled": false})
		}, "PATCH /v1/webhooks/whk_1", `{"enabled":false}`, "map[id:whk_1]"},
		{func(x context.Context, c *Client) (any, error) { return deleted(c.Webhooks().Delete(x, "whk_1")) }, "DELETE /v1/webhooks/whk_1", "", "<nil>"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().RotateSecret(x, "whk_1", 24) }, "POST /v1/webhooks/whk_1/rotate-secret", `{"overlap_hours":24}`, "whsec_1"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().Ping(x, "whk_1") }, "POST /v1/webhooks/whk_1/ping", "", "map[id:whd_1]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Webhooks().Deliveries("whk_1", url.Values{"status": {"failed"}}).Next(x)
		}, "GET /v1/webhooks/whk_1/deliveries?status=failed", "", "map[id:whd_1]"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().GetDelivery(x, "whk_1", "whd_1") }, "GET /v1/webhooks/whk_1/deliveries/whd_1", "", "map[id:whd_1]"},
		{func(x context.Context, c *Client) (any, error) {
			return c.Webhooks().ReplayFailed(x, "whk_1", Object{"after": noon})
		}, "POST /v1/webhooks/whk_1/deliveries/replay", `{"after":"2026-01-31T12:00:00Z"}`, "*"},
		{func(x context.Context, c *Client) (any, error) { return c.APIKeys().List(nil).Next(x) }, "GET /v1/api-keys", "", "map[id:key_1]"},
		{func(x context.Context, c *Client) (any, error) { return c.APIKeys().Create(x, Object{"name": "shop"}) }, "POST /v1/api-keys", `{"name":"shop"}`, "*"},
		{func(x context.Context, c *Client) (any, error) {
			return c.APIKeys().Update(x, "key_1", Object{"name": "shop"})
		}, "PATCH /v1/api-keys/key_1", `{"name":"shop"}`, "map[id:key_1]"},
		{func(x context.Context, c *Client) (any, error) { return deleted(c.APIKeys().Revoke(x, "key_1")) }, "DELETE /v1/api-keys/key_1", "", "<nil>"},
		{func(x context.Context, c *Client) (any, error) { return c.Account(x) }, "GET /v1/account", "", "map[balance:3]"},
		{func(x context.Context, c *Client) (any, error) { return c.Webhooks().Replay(x, "whk_1", "whd_1") }, "POST /v1/webhooks/whk_1/deliveries/whd_1/replay", "", "map[id:whd_1]"},
	} {
		var line, body, key string
		client := talking(t, func(w http.ResponseWriter, r *http.Request) {
			read, _ := io.ReadAll(r.Body)
			line, body, key = r.Method+" "+r.RequestURI, strings.TrimSuffix(string(read), "\n"), r.Header.Get("Idempotency-Key")
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			io.WriteString(w, everything)
		})
		given, err := test.do(context.Background(), client)
		if err != nil || line != test.line || body != test.body || (key != "") != strings.HasSuffix(line, "/batch") {
			t.Errorf("%s: came %s %s with the key %q: %v", test.line, line, body, key, err)
		}
		if printed := fmt.Sprint(given); test.printed != "*" && printed != test.printed || test.printed == "*" && given.(Object)["id"] != "em_1" {
			t.Errorf("%s gave %s", test.line, printed)
		}
	}
}

func TestPages(t *testing.T) {
	var asked []string
	client := talking(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		if r.URL.Query().Get("cursor") == "" {
			io.WriteString(w, `{"messages": [{"id": "em_1"}, {"id": "em_2"}], "next_cursor": "em_2"}`)
			return
		}
		io.WriteString(w, `{"messages": [{"id": "em_3"}], "next_cursor": null}`)
	})
	var ids []any
	messages := client.Messages().List(url.Values{"limit": {"2"}})
	for {
		message, err := messages.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if message == nil {
			break
		}
		if ids = append(ids, message["id"]); len(ids) == 2 && len(asked) != 1 {
			t.Errorf("the second page was read before it was needed")
		}
	}
	if fmt.Sprint(ids, asked) != "[em_1 em_2 em_3] [/v1/messages?limit=2 /v1/messages?limit=2&cursor=em_2]" {
		t.Errorf("came %v of %v", ids, asked)
	}
}

func TestOnlyWhatDoesNoHarmTwiceIsRepeated(t *testing.T) {
	for number, test := range []struct {
		do       operation
		requests int
	}{
		{func(x context.Context, c *Client) (any, error) { return deleted(c.Templates().Delete(x, "welcome")) }, 2},
		{func(x context.Context, c *Client) (any, error) { return c.Cancel(x, "em_1") }, 2},
		{func(x context.Context, c *Client) (any, error) { return c.SendBatch(x, Batch{}) }, 2},
		{func(x context.Context, c *Client) (any, error) { return c.Domains().Create(x, "example.com") }, 1},
		{func(x context.Context, c *Client) (any, error) { return c.Messages().Retry(x, "em_1", "") }, 1},
	} {
		requests := 0
		client := talking(t, func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			io.WriteString(w, everything)
		})
		client.clock.sleep = func(context.Context, time.Duration) error { return nil }
		_, err := test.do(context.Background(), client)
		if requests != test.requests || (err == nil) != (requests == 2) {
			t.Errorf("%d: came %d requests: %v", number, requests, err)
		}
	}
}

func TestResponsesOfOthersAndPathsElsewhere(t *testing.T) {
	client := talking(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"hello": "world"}`) })
	if _, err := client.Domains().Get(context.Background(), "dom_1"); !errors.Is(err, ErrUnexpectedResponse) {
		t.Errorf("a domain: %v", err)
	}
	if _, err := client.SendBatch(context.Background(), Batch{}); !errors.Is(err, ErrUnexpectedResponse) {
		t.Errorf("a batch: %v", err)
	}
	for _, name := range []string{"", ".", ".."} {
		if _, err := client.Templates().Get(context.Background(), name); !errors.Is(err, errSegment) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := client.Cancel(context.Background(), "em_1/../em_2"); err == nil || errors.Is(err, ErrUnexpectedResponse) {
		t.Errorf("another path: %v", err)
	}
}

func talking(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := New(server.URL, WithToken("pr_live_1"))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
