// The objects of the suite, and how they become those of the client and back.

package main

import (
	"encoding/json"
	"errors"
	"time"

	postroad "github.com/postroad/postroad/clients/go"
)

// clientOptions is what a client is made of; what is missing is left to its defaults.
type clientOptions struct {
	BaseURL    string   `json:"base_url"`
	Username   *string  `json:"username"`
	Password   *string  `json:"password"`
	Token      *string  `json:"token"`
	Timeout    *float64 `json:"timeout"`
	MaxElapsed *float64 `json:"max_elapsed"`
}

func (o clientOptions) open() (*postroad.Client, error) {
	var options []postroad.Option
	if o.Username != nil || o.Password != nil {
		options = append(options, postroad.WithCredential(text(o.Username), text(o.Password)))
	}
	if o.Token != nil {
		options = append(options, postroad.WithToken(*o.Token))
	}
	if o.Timeout != nil {
		options = append(options, postroad.WithTimeout(seconds(*o.Timeout)))
	}
	if o.MaxElapsed != nil {
		options = append(options, postroad.WithMaxElapsed(seconds(*o.MaxElapsed)))
	}
	return postroad.New(o.BaseURL, options...)
}

func text(optional *string) string {
	if optional == nil {
		return ""
	}
	return *optional
}

// words is a string or a list of strings.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(w))
}

type email struct {
	From        string            `json:"from"`
	To          words             `json:"to"`
	CC          words             `json:"cc"`
	BCC         words             `json:"bcc"`
	ReplyTo     words             `json:"reply_to"`
	Subject     string            `json:"subject"`
	Text        string            `json:"text"`
	HTML        string            `json:"html"`
	Template    string            `json:"template"`
	Variables   map[string]any    `json:"variables"`
	Headers     map[string]string `json:"headers"`
	Tags        words             `json:"tags"`
	Attachments []attachment      `json:"attachments"`
	SendAt      *time.Time        `json:"send_at"`
	ExpiresIn   int               `json:"expires_in"`
	Metadata    map[string]string `json:"metadata"`
	Simulate    map[string]string `json:"simulate"`
}

func (e email) build() (postroad.Email, error) {
	built := postroad.Email{
		From: e.From, To: e.To, CC: e.CC, BCC: e.BCC, ReplyTo: postroad.Addresses(e.ReplyTo),
		Subject: e.Subject, Text: e.Text, HTML: e.HTML, Template: e.Template,
		Variables: e.Variables, Headers: e.Headers, Tags: e.Tags,
		SendAt: e.SendAt, ExpiresIn: e.ExpiresIn, Metadata: e.Metadata, Simulate: e.Simulate,
	}
	for _, given := range e.Attachments {
		attachment, err := given.build()
		if err != nil {
			return postroad.Email{}, err
		}
		built.Attachments = append(built.Attachments, attachment)
	}
	return built, nil
}

type attachment struct {
	Filename    string `json:"filename"`
	Bytes       []byte `json:"bytes_base64"`
	Path        string `json:"path"`
	ContentType string `json:"content_type"`
	ContentID   string `json:"content_id"`
}

func (a attachment) build() (postroad.Attachment, error) {
	built := postroad.Attachment{Content: a.Bytes}
	if a.Path != "" {
		var err error
		if built, err = postroad.AttachFile(a.Path); err != nil {
			return built, err
		}
	}
	if a.Filename != "" {
		built.Filename = a.Filename
	}
	built.ContentType, built.ContentID = a.ContentType, a.ContentID
	return built, nil
}

// messageLine writes a message; the time of one that has none is null.
func messageLine(message *postroad.Message, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return struct {
		*postroad.Message
		CreatedAt *time.Time `json:"created_at"`
	}{message, unlessZero(message.CreatedAt)}, nil
}

// eventLine writes an event in the same way.
func eventLine(event *postroad.Event, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return struct {
		*postroad.Event
		CreatedAt *time.Time `json:"created_at"`
	}{event, unlessZero(event.CreatedAt)}, nil
}

// errorLine is an error of the client; what there is not is null.
type errorLine struct {
	Status                *int     `json:"status"`
	Kind                  string   `json:"kind"`
	Code                  string   `json:"code"`
	RequestID             *string  `json:"request_id"`
	Message               string   `json:"message"`
	RetryAfter            *float64 `json:"retry_after"`
	IdempotencyKey        *string  `json:"idempotency_key"`
	IsRetryable           bool     `json:"is_retryable"`
	IsInsufficientCredits bool     `json:"is_insufficient_credits"`
	IsIdempotencyConflict bool     `json:"is_idempotency_conflict"`
}

func newErrorLine(failure *postroad.Error) *errorLine {
	return &errorLine{
		Status:                unlessZero(failure.Status),
		Kind:                  kindOf(failure),
		Code:                  failure.Code,
		RequestID:             unlessZero(failure.RequestID),
		Message:               failure.Error(),
		RetryAfter:            unlessZero(failure.RetryAfter.Seconds()),
		IdempotencyKey:        unlessZero(failure.IdempotencyKey),
		IsRetryable:           failure.IsRetryable(),
		IsInsufficientCredits: failure.IsInsufficientCredits(),
		IsIdempotencyConflict: failure.IsIdempotencyConflict(),
	}
}

// kindOf finds the kind as an application does, with errors.Is.
func kindOf(err error) string {
	for name, target := range map[string]error{
		"invalid_request":      postroad.ErrInvalidRequest,
		"authentication":       postroad.ErrAuthentication,
		"insufficient_credits": postroad.ErrInsufficientCredits,
		"permission_denied":    postroad.ErrPermissionDenied,
		"not_found":            postroad.ErrNotFound,
		"idempotency":          postroad.ErrIdempotency,
		"rate_limited":         postroad.ErrRateLimited,
		"server":               postroad.ErrServer,
		"connection_failed":    postroad.ErrConnectionFailed,
		"timed_out":            postroad.ErrTimedOut,
		"unexpected_response":  postroad.ErrUnexpectedResponse,
		"signature":            postroad.ErrSignature,
	} {
		if errors.Is(err, target) {
			return name
		}
	}
	panic("an error of no kind: " + err.Error())
}

func unlessZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
