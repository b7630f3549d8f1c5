// What a client sends, and what it refuses to.

package postroad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

const receiptJSON = `{"id": "em_1", "status": "queued", "request_id": "req_1"}`

var hello = Email{From: "hello@example.com", To: []string{"ada@example.net"}, Subject: "Hello", Text: "Hi"}

// seen is a request as the server saw it.
type seen struct {
	method, path, body string
	header             http.Header
}

// record serves an answer to all requests, and gives what they were.
func record(t *testing.T, handler http.HandlerFunc) (baseURL string, requests func() []seen) {
	t.Helper()
	var mutex sync.Mutex
	var all []seen
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		all = append(all, seen{r.Method, r.URL.Path, string(body), r.Header})
		mutex.Unlock()
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []seen {
		mutex.Lock()
		defer mutex.Unlock()
		return all
	}
}

func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func newClient(t *testing.T, baseURL string, options ...Option) *Client {
	t.Helper()
	client, err := New(baseURL, append([]Option{WithToken("pr_live_1")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestSendWritesWhatWasGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "invoice.pdf")
	if err := os.WriteFile(path, []byte{0xff, 0xfe}, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := AttachFile(path)
	if err != nil {
		t.Fatal(err)
	}
	baseURL, requests := record(t, answerWith(202, receiptJSON))
	email := Email{
		From:        "hello@example.com",
		To:          []string{"ada@example.net"},
		HTML:        "<p>",
		Headers:     map[string]string{"X-Order_Id": "1042"},
		Attachments: []Attachment{file, {Filename: "empty.txt", ContentID: "c1"}},
	}
	receipt, err := newClient(t, baseURL+"/mail/").Send(context.Background(), email)
	if err != nil {
		t.Fatal(err)
	}
	if receipt.ID != "em_1" || receipt.Status != "queued" {
		t.Errorf("got %+v", receipt)
	}
	got := requests()[0]
	want := `{"from":"hello@example.com","to":["ada@example.net"],"html":"<p>","headers":{"X-Order_Id":"1042"},"attachments":[` +
		`{"filename":"invoice.pdf","content":"//4="},{"filename":"empty.txt","content":"","content_id":"c1"}]}`
	if got.method != "POST" || got.path != "/mail/emails" || strings.TrimSpace(got.body) != want {
		t.Errorf("got %s %s %s", got.method, got.path, got.body)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer pr_live_1", "Content-Type": "application/json", "User-Agent": "postroad-go/" + Version, "Accept-Encoding": "",
	} {
		if got.header.Get(name) != value {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(got.header.Get("Idempotency-Key")) {
		t.Errorf("the key is %q", got.header.Get("Idempotency-Key"))
	}
}

func TestGetReadsTimes(t *testing.T) {
	baseURL, requests := record(t, answerWith(200, `{"id": "em_1", "status": "snoozed", "created_at": "2026-01-31T12:00:00.500Z", "new": [1],
		"recipients": [{"email": "ada@example.net", "delivered_at": "2026-01-31T13:00:01+01:00", "bounced_at": null, "last_smtp_code": null}]}`))
	client, err := New(baseURL, WithCredential("smtp_1", "pä:ss"))
	if err != nil {
		t.Fatal(err)
	}
	message, err := client.Get(context.Background(), "em_1")
	if err != nil {
		t.Fatal(err)
	}
	recipient := message.Recipients[0]
	if message.Status != "snoozed" || message.CreatedAt.UnixMilli() != 1769860800500 || recipient.DeliveredAt.Unix() != 1769860801 || recipient.BouncedAt != nil {
		t.Errorf("got %+v", message)
	}
	got := requests()[0]
	if got.method != "GET" || got.path != "/emails/em_1" || got.body != "" || len(got.header["Idempotency-Key"]) != 0 {
		t.Errorf("got %+v", got)
	}
	if got.header.Get("Authorization") != "Basic c210cF8xOnDDpDpzcw==" {
		t.Errorf("got %s", got.header.Get("Authorization"))
	}
}

func TestNewRefuses(t *testing.T) {
	token := WithToken("pr_live_1")
	for name, try := range map[string]struct {
		baseURL string
		options []Option
	}{
		"no credential":            {"http://localhost", nil},
		"two credentials":          {"http://localhost", []Option{token, WithCredential("a", "b")}},
		"an empty token":           {"http://localhost", []Option{WithToken("")}},
		"a line break in a token":  {"http://localhost", []Option{WithToken("hidden\r\nX-Evil: 1")}},
		"NUL in a token":           {"http://localhost", []Option{WithToken("hidden\x00")}},
		"a token beyond ASCII":     {"http://localhost", []Option{WithToken("hidden\xff")}},
		"a colon in a username":    {"http://localhost", []Option{WithCredential("a:b", "hidden")}},
		"no password":              {"http://localhost", []Option{WithCredential("a", "")}},
		"no scheme":                {"localhost:80", []Option{token}},
		"another scheme":           {"ftp://localhost", []Option{token}},
		"no host":                  {"http://:80/", []Option{token}},
		"a user":                   {"http://user:hidden@localhost", []Option{token}},
		"a user in a bad URL":      {"http://user:hidden@local host", []Option{token}},
		"a query":                  {"http://localhost/?", []Option{token}},
		"a fragment":               {"http://localhost/#", []Option{token}},
		"no time for an attempt":   {"http://localhost", []Option{token, WithTimeout(0)}},
		"less than no time":        {"http://localhost", []Option{token, WithMaxElapsed(-1)}},
		"a line break in the host": {"http://local\nhost", []Option{token}},
	} {
		client, err := New(try.baseURL, try.options...)
		if err == nil || client != nil {
			t.Errorf("%s was not refused", name)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}

func TestCallsRefuse(t *testing.T) {
	client := newClient(t, "http://127.0.0.1:9", WithMaxElapsed(0))
	ctx := context.Background()
	var failure *Error
	for _, key := range []string{"a\nb", "a\r", "a\x00", "für", "a\x7f"} {
		if _, err := client.Send(ctx, hello, WithIdempotencyKey(key)); err == nil || errors.As(err, &failure) {
			t.Errorf("the key %q: %v", key, err)
		}
	}
	for _, id := range []string{"", "..", "../v1", "a/b", "a?b", "a%2f", "a\n", "em_١"} {
		if _, err := client.Get(ctx, id); err == nil || errors.As(err, &failure) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	email := Email{Template: "welcome", Variables: map[string]any{"share": math.NaN()}}
	if _, err := client.Send(ctx, email); err == nil || errors.As(err, &failure) {
		t.Errorf("a variable that JSON does not have: %v", err)
	}
	if _, err := AttachFile(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// bareTransport answers as test doubles often do: without any headers.
type bareTransport struct{}

func (bareTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusAccepted, Body: io.NopCloser(strings.NewReader(receiptJSON))}, nil
}

func TestATransportMayLeaveOutHeaders(t *testing.T) {
	client := newClient(t, "http://localhost", WithHTTPClient(&http.Client{Transport: bareTransport{}}))
	if _, err := client.Send(context.Background(), hello); err != nil {
		t.Error(err)
	}
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	for _, given := range []*http.Client{nil, {}} {
		transport := newHTTPClient(given).Transport.(noRedirects).next.(*http.Transport)
		if transport.Proxy != nil {
			t.Errorf("%v asks the environment for a proxy", given)
		}
	}
}

func TestPrintingShowsNoSecret(t *testing.T) {
	for _, option := range []Option{WithToken("hidden"), WithCredential("smtp_1", "hidden")} {
		client, err := New("http://localhost", option)
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			text += fmt.Sprintf(verb, client) + fmt.Sprintf(verb, *client)
		}
		asJSON, _ := json.Marshal(client)
		text += string(asJSON)
		for _, secret := range []string{"hidden", "68696464656e", "aGlkZGVu", "c210cF8xOmhpZGRlbg"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	}
}

func TestGoroutinesShareAClient(t *testing.T) {
	baseURL, requests := record(t, answerWith(202, receiptJSON))
	client := newClient(t, baseURL)
	var group sync.WaitGroup
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := client.Send(context.Background(), hello); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	keys := map[string]bool{}
	for _, request := range requests() {
		keys[request.header.Get("Idempotency-Key")] = true
	}
	if len(keys) != 20 {
		t.Errorf("20 sends had %d keys", len(keys))
	}
}

func TestTenSendsUseOneConnection(t *testing.T) {
	var mutex sync.Mutex
	connections := map[string]bool{}
	baseURL, requests := record(t, func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		connections[r.RemoteAddr] = true
		mutex.Unlock()
		answerWith(202, receiptJSON)(w, r)
	})
	client := newClient(t, baseURL)
	for i := 0; i < 10; i++ {
		if _, err := client.Send(context.Background(), hello); err != nil {
			t.Fatal(err)
		}
	}
	if len(requests()) != 10 || len(connections) != 1 {
		t.Errorf("%d requests over %d connections", len(requests()), len(connections))
	}
}
