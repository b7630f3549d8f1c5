// One request and its response.

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
	"time"
)

const (
	maxResponse = 4 << 20 // Bytes that are read of a response.
	maxQuoted   = 200     // Characters of a stranger's text that an error repeats.
)

// attempt sends the request once, within a time, and reads a good response into the given result.
func (c *Client) attempt(ctx context.Context, limit time.Duration, call call, into result) *Error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := c.newRequest(ctx, call)
	if err != nil {
		return noResponse(err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return noResponse(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols { // Its body is the bare connection, which heeds no context.
		return c.read(response, nil, into)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return noResponse(err)
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
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.key != "" {
		request.Header.Set("Idempotency-Key", call.key)
	}
	return request, nil
}

// noResponse is the error of a request that got no response, or only a part of one.
func noResponse(err error) *Error {
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		err = wrapper.Err // The method and the URL say nothing new.
	}
	failure := &Error{Code: CodeConnectionFailed, Message: "no complete response: " + err.Error(), cause: err}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		failure.Code = CodeTimedOut
	}
	if strings.Contains(err.Error(), "malformed HTTP") { // net/http has no type for it.
		failure.Code = CodeUnexpectedResponse
		failure.Message = "the server does not speak HTTP: " + err.Error()
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "dial" && operation.Addr != nil {
		failure.Message = fmt.Sprintf("could not connect to %s: %v", operation.Addr, operation.Err)
	}
	return failure
}

// read tells a good response from an error, and an error of Postroad from something else that sits at its address.
func (c *Client) read(response *http.Response, body []byte, into result) *Error {
	failure := &Error{
		Status:     response.StatusCode,
		Code:       CodeUnexpectedResponse,
		RequestID:  response.Header.Get("X-Request-ID"),
		RetryAfter: parseRetryAfter(response.Header.Get("Retry-After"), c.clock.now()),
	}
	switch {
	case len(body) > maxResponse:
		failure.Message = "the response is longer than 4 MiB"
	case failure.Status >= 200 && failure.Status < 300:
		content := body
		if failure.Status == http.StatusNoContent {
			content = []byte("{}")
		}
		if json.Unmarshal(content, into) == nil && into.isComplete() {
			return nil
		}
		failure.Message = "the response is not one of Postroad: " + quote(string(body))
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
		e.Message = "the response is not one of Postroad: " + quote(string(body))
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
