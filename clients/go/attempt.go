// One request and its answer.

package postroad

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

const (
	maxAnswer = 4 << 20 // Bytes that are read of an answer.
	maxQuoted = 200     // Characters of a stranger's text that an error repeats.
)

// attempt sends the request once, and reads a good answer into the given one.
func (c *Client) attempt(ctx context.Context, call call, into answer) *Error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := c.newRequest(ctx, call)
	if err != nil {
		return noAnswer(err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return noAnswer(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols { // Its body is the bare connection, which heeds no context.
		return c.read(response, nil, into)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return noAnswer(err)
	}
	return c.read(response, body, into)
}

func (c *Client) newRequest(ctx context.Context, call call) (*http.Request, error) {
	// The reader hides its type, so that the request has no GetBody: net/http would repeat a request that it can rewind on its own
	// account when a kept connection breaks, and neither the number of attempts nor the pauses between them would be ours.
	body := io.NopCloser(bytes.NewReader(call.body))
	request, err := http.NewRequestWithContext(ctx, call.method, c.baseURL+call.path, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(call.body))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "postroad-go/"+Version)
	c.authorize(request.Header)
	if call.method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", call.key)
	}
	return request, nil
}

// noAnswer is the error of a request that got no answer, or only a part of one.
func noAnswer(err error) *Error {
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		err = wrapper.Err // The method and the URL say nothing new.
	}
	failure := &Error{Code: codeConnectionFailed, Message: "no complete answer: " + err.Error(), cause: err}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		failure.Code = codeTimedOut
	}
	if strings.Contains(err.Error(), "malformed HTTP") { // net/http has no type for it.
		failure.Code = codeUnexpectedResponse
		failure.Message = "the server does not speak HTTP: " + err.Error()
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "dial" && operation.Addr != nil {
		failure.Message = fmt.Sprintf("could not connect to %s: %v", operation.Addr, operation.Err)
	}
	return failure
}

// read tells a good answer from an error, and an error of Postroad from something else that sits at its address.
func (c *Client) read(response *http.Response, body []byte, into answer) *Error {
	failure := &Error{
		Status:     response.StatusCode,
		Code:       codeUnexpectedResponse,
		RequestID:  response.Header.Get("X-Request-ID"),
		RetryAfter: parseRetryAfter(response.Header.Get("Retry-After"), c.clock.now()),
	}
	switch {
	case len(body) > maxAnswer:
		failure.Message = "the answer is longer than 4 MiB"
	case failure.Status >= 200 && failure.Status < 300:
		if json.Unmarshal(body, into) == nil && into.isComplete() {
			return nil
		}
		failure.Message = "the answer is not one of Postroad: " + quote(string(body))
	case failure.Status >= 300 && failure.Status < 400:
		failure.Message = "redirects are not followed, and this one leads to: " + quote(response.Header.Get(unfollowed))
	default:
		failure.readError(body)
	}
	return failure
}

// readError takes over the error object of Postroad, if the body is one.
func (e *Error) readError(body []byte) {
	var object map[string]any
	// What is not an object leaves it empty, and there is no code in it.
	_ = json.Unmarshal(body, &object)
	if id, _ := object["request_id"].(string); id != "" {
		e.RequestID = id
	}
	code, _ := object["code"].(string)
	if code == "" {
		e.Message = "the answer is not one of Postroad: " + quote(string(body))
		return
	}
	e.Code = code
	e.Message = "the server gives no reason"
	if reason, _ := object["error"].(string); reason != "" {
		e.Message = reason
	}
}

// quote makes a stranger's text fit for one line of a log.
func quote(text string) string {
	if len(text) > 4*maxQuoted { // A character has 4 bytes at most.
		text = text[:4*maxQuoted]
	}
	characters := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
	if len(characters) > maxQuoted {
		characters = characters[:maxQuoted]
	}
	return fmt.Sprintf("%q", string(characters))
}
