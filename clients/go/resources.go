// The resources of the account, over one way of making requests.

package postroad

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Object is an object of the API as JSON makes it, with the names of the documentation.
type Object = map[string]any

// Messages is the message log. Reading it needs the scope read.
type Messages struct{ client *Client }

// Templates are the templates of mail.
type Templates struct{ client *Client }

// Suppressions are the addresses that get no mail from the account.
type Suppressions struct{ client *Client }

// Domains are the sender domains.
type Domains struct{ client *Client }

// Webhooks are the settings of the webhooks; Verify and ParseEvent are for what they send.
type Webhooks struct{ client *Client }

// APIKeys are keys for programs, with scopes.
type APIKeys struct{ client *Client }

// APIKeys gives the API keys.
func (c *Client) APIKeys() APIKeys { return APIKeys{c} }

// List gives all keys, oldest first, without the keys themselves.
func (k APIKeys) List(filters url.Values) *Pages {
	return k.client.pages("/v1/api-keys", "api_keys", filters)
}

// Create makes a key: the member api_key, and its secret, which is never shown again. The settings need a name.
func (k APIKeys) Create(ctx context.Context, settings Object) (Object, error) {
	return k.client.object(ctx, http.MethodPost, "/v1/api-keys", settings, "")
}

// Update changes the name, the scopes or the limits of a key.
func (k APIKeys) Update(ctx context.Context, id string, settings Object) (Object, error) {
	return k.client.object(ctx, http.MethodPatch, "/v1/api-keys/"+segment(id), settings, "api_key")
}

// Revoke revokes a key.
func (k APIKeys) Revoke(ctx context.Context, id string) error {
	return k.client.remove(ctx, "/v1/api-keys/"+segment(id))
}

// Messages gives the message log.
func (c *Client) Messages() Messages { return Messages{c} }

// Templates gives the templates.
func (c *Client) Templates() Templates { return Templates{c} }

// Suppressions gives the suppressed addresses.
func (c *Client) Suppressions() Suppressions { return Suppressions{c} }

// Domains gives the sender domains.
func (c *Client) Domains() Domains { return Domains{c} }

// Webhooks gives the webhooks.
func (c *Client) Webhooks() Webhooks { return Webhooks{c} }

// Statistics counts what became of the mail of a period: 24h, which an empty one means, 7d or 30d.
func (c *Client) Statistics(ctx context.Context, period string) (Object, error) {
	path := "/v1/statistics"
	if period != "" {
		path += "?" + encodeQuery(url.Values{"period": {period}})
	}
	return c.object(ctx, http.MethodGet, path, nil, "statistics")
}

// Account gives the balance, and whether the account may send.
func (c *Client) Account(ctx context.Context) (Object, error) {
	return c.object(ctx, http.MethodGet, "/v1/account", nil, "account")
}

// List gives the messages that match, newest first. Filters are status, source, from, to, tag, metadata, after, before and mode.
func (m Messages) List(filters url.Values) *Pages {
	return m.client.pages("/v1/messages", "messages", filters)
}

// Get gives one message with all its attempts.
func (m Messages) Get(ctx context.Context, id string) (Object, error) {
	return m.client.object(ctx, http.MethodGet, "/v1/messages/"+segment(id), nil, "")
}

// Retry retries the waiting recipients now, or the one that is named.
func (m Messages) Retry(ctx context.Context, id, recipientID string) (Object, error) {
	body := Object{}
	if recipientID != "" {
		body["recipient_id"] = recipientID
	}
	return m.client.object(ctx, http.MethodPost, "/v1/messages/"+segment(id)+"/retry", body, "")
}

// List gives all templates, without their bodies.
func (t Templates) List(filters url.Values) *Pages {
	return t.client.pages("/v1/templates", "templates", filters)
}

// Get gives one template.
func (t Templates) Get(ctx context.Context, alias string) (Object, error) {
	return t.client.object(ctx, http.MethodGet, "/v1/templates/"+segment(alias), nil, "template")
}

// Save creates a template or changes it. Its members are subject, text and html.
func (t Templates) Save(ctx context.Context, alias string, template Object) (Object, error) {
	return t.client.object(ctx, http.MethodPut, "/v1/templates/"+segment(alias), template, "template")
}

// Delete removes a template.
func (t Templates) Delete(ctx context.Context, alias string) error {
	return t.client.remove(ctx, "/v1/templates/"+segment(alias))
}

// Preview tells what a mail with these values would say: subject, text and html.
func (t Templates) Preview(ctx context.Context, alias string, variables map[string]any) (Object, error) {
	if variables == nil {
		variables = map[string]any{}
	}
	body := Object{"variables": variables}
	return t.client.harmless(ctx, "/v1/templates/"+segment(alias)+"/preview", body, "")
}

// List gives the suppressed addresses in alphabetical order. Filters are email and source.
func (s Suppressions) List(filters url.Values) *Pages {
	return s.client.pages("/v1/suppressions", "suppressions", filters)
}

// Create suppresses an address. The reason may be empty.
func (s Suppressions) Create(ctx context.Context, email, reason string) (Object, error) {
	body := Object{"email": email}
	if reason != "" {
		body["reason"] = reason
	}
	return s.client.object(ctx, http.MethodPost, "/v1/suppressions", body, "suppression")
}

// Get tells why an address is suppressed.
func (s Suppressions) Get(ctx context.Context, email string) (Object, error) {
	return s.client.object(ctx, http.MethodGet, "/v1/suppressions/"+segment(email), nil, "suppression")
}

// Delete takes an address off the list.
func (s Suppressions) Delete(ctx context.Context, email string) error {
	return s.client.remove(ctx, "/v1/suppressions/"+segment(email))
}

// List gives all domains, without their DNS records.
func (d Domains) List(filters url.Values) *Pages {
	return d.client.pages("/v1/domains", "domains", filters)
}

// Create registers a domain; its records say what to put into DNS.
func (d Domains) Create(ctx context.Context, name string) (Object, error) {
	return d.client.object(ctx, http.MethodPost, "/v1/domains", Object{"name": name}, "domain")
}

// Get gives one domain with its DNS records.
func (d Domains) Get(ctx context.Context, id string) (Object, error) {
	return d.client.object(ctx, http.MethodGet, "/v1/domains/"+segment(id), nil, "domain")
}

// Check checks the DNS records of a domain now.
func (d Domains) Check(ctx context.Context, id string) (Object, error) {
	return d.client.harmless(ctx, "/v1/domains/"+segment(id)+"/check", nil, "domain")
}

// RotateKey makes a new DKIM key, which signs as soon as its record is found.
func (d Domains) RotateKey(ctx context.Context, id string) (Object, error) {
	return d.client.object(ctx, http.MethodPost, "/v1/domains/"+segment(id)+"/rotate-key", nil, "domain")
}

// Delete removes a domain.
func (d Domains) Delete(ctx context.Context, id string) error {
	return d.client.remove(ctx, "/v1/domains/"+segment(id))
}

// List gives all webhooks, the first one first.
func (w Webhooks) List() *Pages { return w.client.pages("/v1/webhooks", "webhooks", nil) }

// Create makes a webhook: the member webhook, and its secret, which is never shown again. The settings need a url.
func (w Webhooks) Create(ctx context.Context, settings Object) (Object, error) {
	return w.client.object(ctx, http.MethodPost, "/v1/webhooks", settings, "")
}

// Get gives one webhook.
func (w Webhooks) Get(ctx context.Context, id string) (Object, error) {
	return w.client.object(ctx, http.MethodGet, "/v1/webhooks/"+segment(id), nil, "webhook")
}

// Update changes what is given: url, events, enabled, tags and so on.
func (w Webhooks) Update(ctx context.Context, id string, settings Object) (Object, error) {
	return w.client.object(ctx, http.MethodPatch, "/v1/webhooks/"+segment(id), settings, "webhook")
}

// Delete removes a webhook, and what it has not sent yet.
func (w Webhooks) Delete(ctx context.Context, id string) error {
	return w.client.remove(ctx, "/v1/webhooks/"+segment(id))
}

// RotateSecret gives a new secret. With an overlap, the old one signs as well for so many hours.
func (w Webhooks) RotateSecret(ctx context.Context, id string, overlapHours int) (string, error) {
	body := Object{}
	if overlapHours != 0 {
		body["overlap_hours"] = overlapHours
	}
	response, err := w.client.object(ctx, http.MethodPost, "/v1/webhooks/"+segment(id)+"/rotate-secret", body, "")
	secret, _ := response["secret"].(string)
	return secret, err
}

// Ping sends a test event now, and gives its delivery.
func (w Webhooks) Ping(ctx context.Context, id string) (Object, error) {
	return w.client.object(ctx, http.MethodPost, "/v1/webhooks/"+segment(id)+"/ping", nil, "delivery")
}

// Deliveries gives the deliveries of the last 7 days, newest first. Filters are message_id and status.
func (w Webhooks) Deliveries(id string, filters url.Values) *Pages {
	return w.client.pages("/v1/webhooks/"+segment(id)+"/deliveries", "deliveries", filters)
}

// GetDelivery gives one delivery with every attempt.
func (w Webhooks) GetDelivery(ctx context.Context, id, deliveryID string) (Object, error) {
	path := "/v1/webhooks/" + segment(id) + "/deliveries/" + segment(deliveryID)
	return w.client.object(ctx, http.MethodGet, path, nil, "delivery")
}

// ReplayFailed sends the failed events of a period again: after and before.
func (w Webhooks) ReplayFailed(ctx context.Context, id string, period Object) (Object, error) {
	return w.client.object(ctx, http.MethodPost, "/v1/webhooks/"+segment(id)+"/deliveries/replay", period, "")
}

// Replay sends the event of a delivery again.
func (w Webhooks) Replay(ctx context.Context, id, deliveryID string) (Object, error) {
	path := "/v1/webhooks/" + segment(id) + "/deliveries/" + segment(deliveryID) + "/replay"
	return w.client.object(ctx, http.MethodPost, path, nil, "delivery")
}

// response is any object, or one with a member without which it is none of Postroad.
type response struct {
	members Object
	needs   string
}

func (r *response) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &r.members) }

func (r *response) isComplete() bool {
	_, isObject := r.members[r.needs].(Object)
	return r.members != nil && (r.needs == "" || isObject)
}

var errSegment = errors.New(`postroad: a name in a path is not empty, and not "." or ".."`)

// segment makes a name a part of a path. What would lead to another path becomes one that exchange refuses.
func segment(name string) string {
	if name == "" || name == "." || name == ".." {
		return refusedSegment
	}
	return strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// refusedSegment is in no path: a zero byte is always escaped.
const refusedSegment = "\x00"

// object makes a request, and gives the response or a member of it.
func (c *Client) object(ctx context.Context, method, path string, body Object, member string) (Object, error) {
	return c.result(ctx, call{method: method, path: path}, body, member)
}

func (c *Client) result(ctx context.Context, request call, body Object, member string) (Object, error) {
	into := response{needs: member}
	if err := c.exchange(ctx, request, body, &into); err != nil {
		return nil, err
	}
	if member == "" {
		return into.members, nil
	}
	return into.members[member].(Object), nil
}

// harmless makes a POST that may be made twice.
func (c *Client) harmless(ctx context.Context, path string, body Object, member string) (Object, error) {
	return c.result(ctx, call{method: http.MethodPost, path: path, isHarmless: true}, body, member)
}

func (c *Client) remove(ctx context.Context, path string) error {
	return c.exchange(ctx, call{method: http.MethodDelete, path: path}, nil, &response{})
}

// wireTime is a time as the API takes it.
func wireTime(at *time.Time) any {
	if at == nil {
		return nil
	}
	return at.Format(time.RFC3339Nano)
}
