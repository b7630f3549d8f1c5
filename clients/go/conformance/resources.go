// The operations of resources, with plain values.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	postroad "github.com/postroad/postroad/clients/go"
)

// resourceCall is the members of the operation call.
type resourceCall struct {
	Name       string            `json:"name"`
	Arguments  []json.RawMessage `json:"arguments"`
	Parameters postroad.Object   `json:"parameters"`
}

func (o resourceCall) perform(c *postroad.Client) (any, error) {
	x := context.Background()
	switch o.Name {
	case "account":
		return c.Account(x)
	case "statistics":
		return c.Statistics(x, o.text("period"))
	case "messages.list":
		return o.all(c.Messages().List(o.values()))
	case "messages.get":
		return c.Messages().Get(x, o.argument(0))
	case "messages.retry":
		return c.Messages().Retry(x, o.argument(0), o.text("recipient_id"))
	case "templates.list":
		return o.all(c.Templates().List(o.values()))
	case "templates.get":
		return c.Templates().Get(x, o.argument(0))
	case "templates.save":
		return c.Templates().Save(x, o.argument(0), o.Parameters)
	case "templates.delete":
		return nil, c.Templates().Delete(x, o.argument(0))
	case "templates.preview":
		return c.Templates().Preview(x, o.argument(0), o.variables())
	case "suppressions.list":
		return o.all(c.Suppressions().List(o.values()))
	case "suppressions.create":
		return c.Suppressions().Create(x, o.text("email"), o.text("reason"))
	case "suppressions.get":
		return c.Suppressions().Get(x, o.argument(0))
	case "suppressions.delete":
		return nil, c.Suppressions().Delete(x, o.argument(0))
	case "domains.list":
		return o.all(c.Domains().List(o.values()))
	case "domains.create":
		return c.Domains().Create(x, o.text("name"))
	case "domains.get":
		return c.Domains().Get(x, o.argument(0))
	case "domains.check":
		return c.Domains().Check(x, o.argument(0))
	case "domains.rotate_key":
		return c.Domains().RotateKey(x, o.argument(0))
	case "domains.delete":
		return nil, c.Domains().Delete(x, o.argument(0))
	case "webhooks.list":
		return o.all(c.Webhooks().List())
	case "webhooks.create":
		return c.Webhooks().Create(x, o.Parameters)
	case "webhooks.get":
		return c.Webhooks().Get(x, o.argument(0))
	case "webhooks.update":
		return c.Webhooks().Update(x, o.argument(0), o.Parameters)
	case "webhooks.delete":
		return nil, c.Webhooks().Delete(x, o.argument(0))
	case "webhooks.rotate_secret":
		return c.Webhooks().RotateSecret(x, o.argument(0), o.number("overlap_hours"))
	case "webhooks.ping":
		return c.Webhooks().Ping(x, o.argument(0))
	case "webhooks.deliveries":
		return o.all(c.Webhooks().Deliveries(o.argument(0), o.values()))
	case "webhooks.get_delivery":
		return c.Webhooks().GetDelivery(x, o.argument(0), o.argument(1))
	case "webhooks.replay":
		return c.Webhooks().Replay(x, o.argument(0), o.argument(1))
	case "webhooks.replay_failed":
		return c.Webhooks().ReplayFailed(x, o.argument(0), o.Parameters)
	case "api_keys.list":
		return o.all(c.APIKeys().List(o.values()))
	case "api_keys.create":
		return c.APIKeys().Create(x, o.Parameters)
	case "api_keys.update":
		return c.APIKeys().Update(x, o.argument(0), o.Parameters)
	case "api_keys.revoke":
		return nil, c.APIKeys().Revoke(x, o.argument(0))
	case "reschedule":
		return c.Reschedule(x, o.argument(0), nil)
	case "cancel":
		return c.Cancel(x, o.argument(0))
	case "send_batch":
		return o.sendBatch(c)
	}
	panic("no such operation: " + o.Name)
}

func (o resourceCall) argument(number int) string {
	var text string
	if err := json.Unmarshal(o.Arguments[number], &text); err != nil {
		panic(err)
	}
	return text
}

func (o resourceCall) text(name string) string {
	text, _ := o.Parameters[name].(string)
	return text
}

func (o resourceCall) number(name string) int {
	number, _ := o.Parameters[name].(float64)
	return int(number)
}

func (o resourceCall) variables() map[string]any {
	variables, _ := o.Parameters["variables"].(map[string]any)
	return variables
}

// values are the filters of a list.
func (o resourceCall) values() url.Values {
	values := url.Values{}
	for name, value := range o.Parameters {
		values.Set(name, fmt.Sprint(value))
	}
	return values
}

func (o resourceCall) all(pages *postroad.Pages) (any, error) {
	items := []postroad.Object{}
	for {
		item, err := pages.Next(context.Background())
		if item == nil || err != nil {
			return items, err
		}
		items = append(items, item)
	}
}

func (o resourceCall) sendBatch(c *postroad.Client) (any, error) {
	var given []email
	if err := json.Unmarshal(o.Arguments[0], &given); err != nil {
		return nil, err
	}
	var emails []postroad.Email
	for _, each := range given {
		built, err := each.build()
		if err != nil {
			return nil, err
		}
		emails = append(emails, built)
	}
	allOrNothing, _ := o.Parameters["all_or_nothing"].(bool)
	batch := postroad.Batch{Emails: emails, AllOrNothing: allOrNothing}
	return c.SendBatch(context.Background(), batch, postroad.WithIdempotencyKey(o.text("idempotency_key")))
}
