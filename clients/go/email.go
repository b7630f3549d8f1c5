// What is sent, and what comes back.

package postroad

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// Email is a message to send. It needs From, To, and at least one of Text, HTML, Template and Attachments.
type Email struct {
	From        string            `json:"from,omitempty"`
	To          []string          `json:"to,omitempty"`
	CC          []string          `json:"cc,omitempty"`
	BCC         []string          `json:"bcc,omitempty"`
	ReplyTo     Addresses         `json:"reply_to,omitempty"` // Up to ten.
	Subject     string            `json:"subject,omitempty"`
	Text        string            `json:"text,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Template    string            `json:"template,omitempty"`  // The alias of a template, in the place of Text and HTML.
	Variables   map[string]any    `json:"variables,omitempty"` // Values for the template.
	Headers     map[string]string `json:"headers,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	SendAt      *time.Time        `json:"send_at,omitempty"`    // When to send; nil is now.
	ExpiresIn   int               `json:"expires_in,omitempty"` // Seconds after which delivery is no longer tried.
	Metadata    map[string]string `json:"metadata,omitempty"`   // Your own data, which is not part of the mail.
	Simulate    map[string]string `json:"simulate,omitempty"`   // With a test key: which provider to imitate, and how it behaves.
}

// Addresses are one or more addresses, such as []string{"help@example.com"}. The API writes one alone as a string.
type Addresses []string

// MarshalJSON writes one address as a string, and several as a list.
func (a Addresses) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON reads both.
func (a *Addresses) UnmarshalJSON(data []byte) error {
	var one string
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*a = Addresses{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// Batch is many emails for one request.
type Batch struct {
	Emails       []Email `json:"emails"`
	AllOrNothing bool    `json:"all_or_nothing,omitempty"` // Refuse all of them when one is refused.
}

// TemplateBatch is one template for many recipients.
type TemplateBatch struct {
	From         string            `json:"from,omitempty"`
	Template     string            `json:"template,omitempty"`
	Recipients   []BatchRecipient  `json:"recipients"`
	ReplyTo      Addresses         `json:"reply_to,omitempty"`
	Subject      string            `json:"subject,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Attachments  []Attachment      `json:"attachments,omitempty"`
	SendAt       *time.Time        `json:"send_at,omitempty"`
	ExpiresIn    int               `json:"expires_in,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	AllOrNothing bool              `json:"all_or_nothing,omitempty"` // Refuse all of them when one is refused.
}

// BatchRecipient is one recipient of a TemplateBatch; its metadata is added to that of the batch.
type BatchRecipient struct {
	To        string            `json:"to"`
	Variables map[string]any    `json:"variables,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// BatchResult is what became of one email of a batch: its ID, or the error for which it was refused.
type BatchResult struct {
	ID    string      `json:"id,omitempty"`
	Error *BatchError `json:"error,omitempty"`
}

// BatchError tells why an email of a batch was refused.
type BatchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type batchReceipt struct {
	Results []BatchResult `json:"results"`
}

func (b *batchReceipt) isComplete() bool { return b.Results != nil }

// Attachment is a file of an Email.
type Attachment struct {
	Filename    string `json:"filename"`
	Content     []byte `json:"content"`
	ContentType string `json:"content_type,omitempty"` // Derived from Filename when empty.
	ContentID   string `json:"content_id,omitempty"`   // Shows the file inside the HTML, as cid:<ContentID>.
}

// AttachFile reads an attachment from a file.
func AttachFile(path string) (Attachment, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Attachment{}, err
	}
	return Attachment{Filename: filepath.Base(path), Content: content}, nil
}

// MarshalJSON writes no content as an empty file. encoding/json would write null, which means a missing one.
func (a Attachment) MarshalJSON() ([]byte, error) {
	type plain Attachment
	if a.Content == nil {
		a.Content = []byte{}
	}
	return json.Marshal(plain(a))
}

// Receipt is the response to a send: the email is stored and will be delivered.
type Receipt struct {
	ID              string            `json:"id"`
	Status          string            `json:"status,omitempty"`
	Source          string            `json:"source,omitempty"`
	From            string            `json:"from,omitempty"`
	To              []string          `json:"to,omitempty"`
	CC              []string          `json:"cc,omitempty"`
	BCC             []string          `json:"bcc,omitempty"`
	ReplyTo         Addresses         `json:"reply_to,omitempty"`
	Subject         string            `json:"subject,omitempty"`
	BillingStatus   string            `json:"billing_status,omitempty"`
	RecipientCount  int               `json:"recipient_count"`
	CreditsReserved int               `json:"credits_reserved"`
	Headers         map[string]string `json:"headers,omitempty"`
	Tags            []string          `json:"tags,omitempty"`
	Attachments     []AttachmentInfo  `json:"attachments,omitempty"`
	SendAt          *time.Time        `json:"send_at,omitempty"`
	ExpiresAt       *time.Time        `json:"expires_at,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	RequestID       string            `json:"request_id,omitempty"`
}

// AttachmentInfo is what a Receipt says of an attachment.
type AttachmentInfo struct {
	Filename    string `json:"filename,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	ContentID   string `json:"content_id,omitempty"`
}

// Message is what became of an email.
type Message struct {
	ID              string            `json:"id"`
	Status          string            `json:"status"` // queued, and in the end delivered, partial or failed.
	Source          string            `json:"source,omitempty"`
	From            string            `json:"from,omitempty"`
	Subject         string            `json:"subject,omitempty"`
	BillingStatus   string            `json:"billing_status,omitempty"`
	RecipientCount  int               `json:"recipient_count"`
	CreditsReserved int               `json:"credits_reserved"`
	CreatedAt       time.Time         `json:"created_at"`
	Recipients      []Recipient       `json:"recipients,omitempty"`
	SendAt          *time.Time        `json:"send_at,omitempty"`
	ExpiresAt       *time.Time        `json:"expires_at,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	Test            bool              `json:"test,omitempty"` // Whether it was sent with a test key.
	RequestID       string            `json:"request_id,omitempty"`
}

// Recipient is what became of an email for one address.
type Recipient struct {
	ID               string     `json:"id,omitempty"`
	Email            string     `json:"email,omitempty"`
	Status           string     `json:"status,omitempty"` // queued or deferred, and in the end delivered, bounced or failed.
	BillingStatus    string     `json:"billing_status,omitempty"`
	AttemptCount     int        `json:"attempt_count"`
	LastSMTPCode     int        `json:"last_smtp_code,omitempty"` // 0 when there is none.
	LastSMTPResponse string     `json:"last_smtp_response,omitempty"`
	DeliveredAt      *time.Time `json:"delivered_at,omitempty"` // nil when it was not delivered.
	BouncedAt        *time.Time `json:"bounced_at,omitempty"`   // nil when it did not bounce.
	Queue            Object     `json:"queue,omitempty"`        // When it is tried next, of GetWithQueue.
}

// IsFinal tells whether every recipient has a final status: delivered, bounced, failed, canceled or expired.
func (m *Message) IsFinal() bool {
	for _, recipient := range m.Recipients {
		switch recipient.Status {
		case RecipientDelivered, RecipientBounced, RecipientFailed, RecipientCanceled, RecipientExpired:
		default:
			return false
		}
	}
	return len(m.Recipients) > 0
}

// result is what a call gives when all is well.
type result interface {
	// isComplete tells whether nothing is missing without which it would be no such result.
	isComplete() bool
}

func (r *Receipt) isComplete() bool { return r.ID != "" }

func (m *Message) isComplete() bool { return m.ID != "" && m.Status != "" }
