// Package postroad sends mail through Postroad, reads what became of it, and verifies its webhooks.
package postroad

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Version is the version of this package.
const Version = "0.1.0"

// Client talks to one Postroad with one credential. It may be used by several goroutines at once.
type Client struct {
	baseURL string
	// A function, so that no way of printing a Client shows the credential.
	authorize  func(http.Header)
	http       *http.Client
	timeout    time.Duration
	maxElapsed time.Duration
	clock      clock
}

// New makes a Client of a base URL such as https://mail.example.com, and of WithToken or WithCredential.
func New(baseURL string, options ...Option) (*Client, error) {
	if err := checkBaseURL(baseURL); err != nil {
		return nil, err
	}
	s := settings{timeout: 30 * time.Second, maxElapsed: 60 * time.Second}
	for _, option := range options {
		option(&s)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return &Client{
		baseURL:    strings.TrimRight(baseURL, "/"),
		authorize:  s.credentials[0].authorize,
		http:       newHTTPClient(s.httpClient),
		timeout:    s.timeout,
		maxElapsed: s.maxElapsed,
		clock:      systemClock,
	}, nil
}

// SendOption changes one call of Send, or of its kind.
type SendOption func(*call)

// WithIdempotencyKey names the send. Postroad sends mail with the same key and content once, however often it is asked to.
// Without it each call of Send has a random key, which it keeps across its own retries.
func WithIdempotencyKey(key string) SendOption {
	return func(c *call) { c.key = key }
}

// Send hands an email to Postroad. A receipt means that it is stored, not that it reached an inbox.
func (c *Client) Send(ctx context.Context, email Email, options ...SendOption) (*Receipt, error) {
	receipt := new(Receipt)
	if err := c.send(ctx, "/emails", email, receipt, options); err != nil {
		return nil, err
	}
	return receipt, nil
}

// SendBatch sends many emails with one request, and gives a result for each, in order.
func (c *Client) SendBatch(ctx context.Context, batch Batch, options ...SendOption) ([]BatchResult, error) {
	return c.sendBatch(ctx, batch, options)
}

// SendTemplateBatch sends one template to many recipients, each with an email of their own.
func (c *Client) SendTemplateBatch(ctx context.Context, batch TemplateBatch, options ...SendOption) ([]BatchResult, error) {
	return c.sendBatch(ctx, batch, options)
}

func (c *Client) sendBatch(ctx context.Context, body any, options []SendOption) ([]BatchResult, error) {
	receipt := new(batchReceipt)
	err := c.send(ctx, "/emails/batch", body, receipt, options)
	return receipt.Results, err
}

func (c *Client) send(ctx context.Context, path string, body any, into result, options []SendOption) error {
	send := call{method: http.MethodPost, path: path, key: newKey()}
	for _, option := range options {
		option(&send)
	}
	if !isHeaderValue(send.key) {
		return errors.New("postroad: an idempotency key must be printable ASCII, and not empty")
	}
	return c.exchange(ctx, send, body, into)
}

// exchange makes the call with this body; without one it is nil.
func (c *Client) exchange(ctx context.Context, request call, body any, into result) (err error) {
	if strings.Contains(request.path, refusedSegment) {
		return errSegment
	}
	if object, isObject := body.(Object); body != nil && (!isObject || object != nil) {
		if request.body, err = encode(body); err != nil {
			return fmt.Errorf("postroad: the request cannot be written as JSON: %w", err)
		}
	}
	return c.do(ctx, request, into)
}

var messageID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// emailPath is the path of an email. Nothing in an id can lead to another one.
func emailPath(id string) (string, error) {
	if !messageID.MatchString(id) {
		return "", fmt.Errorf("postroad: a message id has letters, digits, _ and - only, not %q", id)
	}
	return "/emails/" + id, nil
}

// Get reads what became of an email. The id is that of its receipt.
func (c *Client) Get(ctx context.Context, id string) (*Message, error) {
	return c.get(ctx, id, "")
}

// GetWithQueue is Get, and tells when each recipient is tried next, and why not earlier.
func (c *Client) GetWithQueue(ctx context.Context, id string) (*Message, error) {
	return c.get(ctx, id, "?include=queue")
}

func (c *Client) get(ctx context.Context, id, query string) (*Message, error) {
	path, err := emailPath(id)
	if err != nil {
		return nil, err
	}
	message := new(Message)
	if err := c.do(ctx, call{method: http.MethodGet, path: path + query}, message); err != nil {
		return nil, err
	}
	return message, nil
}

// Reschedule sends a scheduled email at another time; nil sends it now. It gives the id, the status and the new times.
func (c *Client) Reschedule(ctx context.Context, id string, sendAt *time.Time) (Object, error) {
	path, err := emailPath(id)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodPatch, path, Object{"send_at": wireTime(sendAt)}, "")
}

// Cancel cancels the recipients for which no attempt has begun, and tells of each whether it is canceled.
func (c *Client) Cancel(ctx context.Context, id string) (Object, error) {
	path, err := emailPath(id)
	if err != nil {
		return nil, err
	}
	return c.harmless(ctx, path+"/cancel", nil, "")
}

const (
	firstPoll   = time.Second
	longestPoll = 10 * time.Second
)

// Wait reads an email again and again until it is final, for at most this time (5 minutes is usual; 0 reads once). When the time
// is up the error is ErrTimedOut. With an error, the message is the last that was read, or nil.
func (c *Client) Wait(ctx context.Context, id string, timeout time.Duration) (*Message, error) {
	if timeout < 0 {
		return nil, errors.New("postroad: the time to wait must not be less than 0")
	}
	end := c.clock.now().Add(timeout)
	var last *Message
	for pause := firstPoll; ; pause = longer(pause) {
		message, err := c.Get(ctx, id)
		if err != nil {
			return last, err
		}
		last = message
		left := end.Sub(c.clock.now())
		switch {
		case message.IsFinal():
			return message, nil
		case left <= 0:
			return last, &Error{Code: CodeTimedOut, Message: fmt.Sprintf("%s is not final after %v", id, timeout)}
		case left < pause:
			pause = left
		}
		if c.clock.sleep(ctx, pause) != nil {
			return last, interrupted(ctx, &Error{}, "while waiting for "+id)
		}
	}
}

// longer is the pause after this one.
func longer(pause time.Duration) time.Duration {
	if pause = pause * 3 / 2; pause < longestPoll {
		return pause
	}
	return longestPoll
}

// checkBaseURL never quotes the URL: one that is refused may have a password in it.
func checkBaseURL(baseURL string) error {
	parsed, err := url.Parse(baseURL)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" {
		return errors.New("postroad: the base URL must be http:// or https:// with a host")
	}
	if parsed.User != nil || strings.ContainsAny(baseURL, "?#") {
		return errors.New("postroad: the base URL must have no user, no query and no fragment")
	}
	return nil
}

// encode leaves < and > as they are: escaped, an HTML body could outgrow what the server takes.
func encode(body any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return buffer.Bytes(), err
}

// isHeaderValue tells what may stand in a header as it is. net/http refuses control characters, and only after a connection was made.
func isHeaderValue(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
