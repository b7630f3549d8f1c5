package postroad

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestOneAddressIsAStringAndSeveralAreAList(t *testing.T) {
	for written, addresses := range map[string]Addresses{
		`{}`:                           {},
		`{"reply_to":"a@example.com"}`: {"a@example.com"},
		`{"reply_to":["a@example.com","b@example.com"]}`: {"a@example.com", "b@example.com"},
	} {
		body, err := json.Marshal(Email{ReplyTo: addresses})
		if err != nil || string(body) != written {
			t.Errorf("%v was written as %s: %v", addresses, body, err)
		}
		var receipt Receipt
		if err := json.Unmarshal([]byte(written), &receipt); err != nil || !reflect.DeepEqual(append(Addresses{}, receipt.ReplyTo...), addresses) {
			t.Errorf("%s was read as %v: %v", written, receipt.ReplyTo, err)
		}
	}
	var receipt Receipt
	if err := json.Unmarshal([]byte(`{"reply_to":null}`), &receipt); err != nil || receipt.ReplyTo != nil {
		t.Errorf("null was read as %v: %v", receipt.ReplyTo, err)
	}
	if err := json.Unmarshal([]byte(`{"reply_to":7}`), &receipt); err == nil {
		t.Error("a number was read as an address")
	}
}
