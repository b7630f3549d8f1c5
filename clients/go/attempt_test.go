// Answers that are strange, cut short, late, or not from Postroad.

package postroad

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// script serves one connection after another: each string answers one request of its connection, which is closed after the last.
func script(t *testing.T, connections ...[]string) (baseURL string, requests <-chan *http.Request) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	seen := make(chan *http.Request, 100)
	go func() {
		for _, answers := range connections {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(connection)
			for _, answer := range answers {
				request, err := http.ReadRequest(reader)
				if err != nil {
					break
				}
				io.Copy(io.Discard, request.Body)
				seen <- request
				io.WriteString(connection, answer)
			}
			connection.Close()
		}
	}()
	return "http://" + listener.Addr().String(), seen
}

func TestNetHTTPDoesNotRetryByItself(t *testing.T) {
	unavailable := "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
	for name, call := range map[string]func(*Client) error{
		"send": func(c *Client) error { _, err := c.Send(context.Background(), hello); return err },
		"get":  func(c *Client) error { _, err := c.Get(context.Background(), "em_1"); return err },
	} {
		// The second request comes on the kept connection, which is closed in the place of an answer.
		baseURL, requests := script(t, []string{unavailable, ""}, []string{unavailable}, []string{unavailable})
		client := newClient(t, baseURL, WithMaxElapsed(time.Second/2)) // Room for one pause of 0.25 s.
		withoutSleep(client)
		var failure *Error
		if err := call(client); !errors.As(err, &failure) || failure.Code != CodeConnectionFailed || len(requests) != 2 {
			t.Errorf("%s: %v after %d requests", name, err, len(requests))
		}
	}
}

func TestAnswersThatAreCutShort(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":       "",
		"half a head":   "HTTP/1.1 202 Acc",
		"half a body":   "HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n" + receiptJSON,
		"no last chunk": "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n39\r\n" + receiptJSON + "\r\n",
		"half an error": "HTTP/1.1 402 Payment Required\r\nContent-Length: 1000\r\n\r\n{}",
		"two lengths":   "HTTP/1.1 202 Accepted\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
	} {
		baseURL, _ := script(t, []string{answer})
		_, err := newClient(t, baseURL, WithMaxElapsed(0)).Send(context.Background(), hello)
		var failure *Error
		if !errors.As(err, &failure) || failure.Code != CodeConnectionFailed || failure.Status != 0 || errors.Unwrap(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAServerThatDoesNotSpeakHTTP(t *testing.T) {
	baseURL, requests := script(t, []string{"220 mail.example.com ESMTP\r\n"})
	_, err := newClient(t, baseURL).Send(context.Background(), hello)
	var failure *Error
	if !errors.As(err, &failure) || failure.Code != CodeUnexpectedResponse || failure.Status != 0 || len(requests) != 1 {
		t.Errorf("%v after %d requests", err, len(requests))
	}
}

func TestUnexpectedAnswers(t *testing.T) {
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	io.WriteString(writer, receiptJSON)
	writer.Close()

	for name, try := range map[string]struct {
		status int
		body   string
		quoted string
	}{
		"204":                   {204, "", `""`},
		"an empty 202":          {202, "", `""`},
		"a list":                {202, `[{"id": "em_1"}]`, `[{`},
		"null":                  {202, `null`, `null`},
		"two answers":           {202, receiptJSON + receiptJSON, `em_1`},
		"an id of another type": {202, `{"id": 7}`, `7`},
		"an empty id":           {202, `{"id": ""}`, ``},
		"a list that is none":   {202, `{"id": "em_1", "to": "ada@example.net"}`, `ada`},
		"a page":                {501, "<h1>Bad\x1b[31m\n  Gateway</h1>", `<h1>Bad\x1b[31m Gateway</h1>`},
		"a code that is none":   {400, `{"code": 7, "request_id": 7}`, `7`},
		"an empty code":         {400, `{"code": ""}`, ``},
		"deep JSON":             {400, strings.Repeat("[", 100_000), `[[[`},
		"a gzip that none did":  {202, zipped.String(), ``},
		"a long answer":         {202, receiptJSON + strings.Repeat(" ", maxResponse), `4 MiB`},
	} {
		baseURL, requests := record(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-ID", "req_header")
			answerWith(try.status, try.body)(w, nil)
		})
		_, err := newClient(t, baseURL).Send(context.Background(), hello)
		var failure *Error
		if !errors.As(err, &failure) || failure.Code != CodeUnexpectedResponse || failure.Status != try.status || failure.RequestID != "req_header" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(requests()) != 1 || !strings.Contains(failure.Message, try.quoted) || len(failure.Message) > 1000 {
			t.Errorf("%s: %d requests, %v", name, len(requests()), err)
		}
	}
}

func TestQuoteIsShort(t *testing.T) {
	for text, want := range map[string]int{"": 2, strings.Repeat("ü", 200): 402, strings.Repeat("ü", 5000): 402, strings.Repeat("x", 201): 202} {
		if got := len(quote(text)); got != want {
			t.Errorf("%d bytes became %d", len(text), got)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, location := range []string{"/elsewhere", "http://[elsewhere", "%elsewhere"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			baseURL, requests := record(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			own := &http.Client{}
			for _, options := range [][]Option{nil, {WithHTTPClient(own)}} {
				_, err := newClient(t, baseURL, options...).Send(context.Background(), hello)
				var failure *Error
				if !errors.As(err, &failure) || failure.Status != status || failure.Code != CodeUnexpectedResponse || !strings.Contains(failure.Message, location) {
					t.Errorf("%d to %s: %v", status, location, err)
				}
			}
			if len(requests()) != 2 || own.Transport != nil {
				t.Errorf("%d to %s: %d requests", status, location, len(requests()))
			}
		}
	}
}

func TestAnotherProtocolIsNotWaitedFor(t *testing.T) {
	left := make(chan error, 1)
	baseURL, _ := record(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, _ := w.(http.Hijacker).Hijack()
		io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, err := buffered.ReadByte() // Until the client has gone.
		connection.Close()
		left <- err
	})
	_, err := newClient(t, baseURL).Get(context.Background(), "em_1")
	var failure *Error
	if !errors.As(err, &failure) || failure.Status != 101 || failure.Code != CodeUnexpectedResponse {
		t.Error(err)
	}
	if err := <-left; err != io.EOF {
		t.Error(err)
	}
}

func TestTimeouts(t *testing.T) {
	baseURL, _ := record(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trickle/emails/em_1" {
			w.(http.Flusher).Flush() // The head, and then nothing.
		}
		<-r.Context().Done()
	})
	for _, path := range []string{"/hang", "/trickle"} {
		for _, limit := range [][]Option{{WithTimeout(20 * time.Millisecond), WithMaxElapsed(0)}, {WithMaxElapsed(20 * time.Millisecond)}} {
			_, err := newClient(t, baseURL+path, limit...).Get(context.Background(), "em_1")
			var failure *Error
			if !errors.As(err, &failure) || failure.Code != CodeTimedOut || failure.Status != 0 || !failure.IsRetryable() {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestTLSIsVerifiedAndHTTP2Works(t *testing.T) {
	versions := make(chan int, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		versions <- r.ProtoMajor
		io.WriteString(w, receiptJSON)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // It would report the client that hangs up.
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	trusting := newClient(t, server.URL, WithHTTPClient(server.Client()))
	if _, err := trusting.Send(context.Background(), hello); err != nil {
		t.Error(err)
	}
	if _, err := trusting.Get(context.Background(), "em_1"); err != nil {
		t.Error(err)
	}
	if first, second := <-versions, <-versions; first != 2 || second != 2 {
		t.Errorf("HTTP/%d and HTTP/%d", first, second)
	}
	if _, err := newClient(t, server.URL, WithMaxElapsed(0)).Get(context.Background(), "em_1"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger's certificate: %v", err)
	}
}
