// Lists, page after page.

package postroad

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// Pages goes through a list; the next page is read when it is needed.
type Pages struct {
	client     *Client
	path, name string
	following  string // The part of the query that leads to the next page.
	items      []Object
	isLast     bool
}

func (c *Client) pages(path, name string, filters url.Values) *Pages {
	return &Pages{client: c, path: path + "?" + encodeQuery(filters), name: name}
}

// Next gives the next item; nil without an error is the end of the list.
func (p *Pages) Next(ctx context.Context) (Object, error) {
	for len(p.items) == 0 {
		if p.isLast {
			return nil, nil
		}
		if err := p.read(ctx); err != nil {
			return nil, err
		}
	}
	item := p.items[0]
	p.items = p.items[1:]
	return item, nil
}

func (p *Pages) read(ctx context.Context) error {
	path := strings.TrimSuffix(strings.Replace(p.path+p.following, "?&", "?", 1), "?")
	page, err := p.client.object(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return err
	}
	items, _ := page[p.name].([]any)
	for _, item := range items {
		if object, ok := item.(Object); ok {
			p.items = append(p.items, object)
		}
	}
	p.isLast = true
	for member, filter := range map[string]string{"next_cursor": "cursor", "next_before": "before"} {
		if next, _ := page[member].(string); next != "" {
			p.isLast, p.following = false, "&"+encodeQuery(url.Values{filter: {next}})
		}
	}
	return nil
}

// encodeQuery writes a blank as %20: not everyone takes a plus for one.
func encodeQuery(query url.Values) string {
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}
