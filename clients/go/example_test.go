// The code of the README, run against a little server. TestReadme sees to it that both are the same.

package postroad_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	postroad "github.com/postroad/postroad/clients/go"
)

func TestMain(m *testing.M) {
	server := httptest.NewServer(http.HandlerFunc(pretendToBePostroad))
	os.Setenv("POSTROAD_URL", server.URL)
	os.Setenv("POSTROAD_API_KEY", "pr_live_example")
	os.Setenv("POSTROAD_WEBHOOK_SECRET", "whsec_example")
	code := m.Run()
	server.Close()
	os.Exit(code)
}

func pretendToBePostroad(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.URL.Path == "/emails/batch":
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"results": [{"id": "em_2"}]}`)
	case r.URL.Path == "/v1/templates/reminder":
		io.WriteString(w, `{"template": {"alias": "reminder"}}`)
	case r.URL.Path == "/v1/messages":
		io.WriteString(w, `{"messages": [{"id": "em_3", "status": "queued"}], "next_cursor": null}`)
	case r.Method == http.MethodGet:
		io.WriteString(w, `{"id": "em_1", "status": "delivered", "recipients": [{"email": "ada@example.net", "status": "delivered"}]}`)
	case strings.Contains(string(body), "poor@example.net"):
		w.WriteHeader(http.StatusPaymentRequired)
		io.WriteString(w, `{"error": "the account has no credits", "code": "insufficient_credits", "request_id": "req_1"}`)
	default:
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"id": "em_1", "status": "queued", "request_id": "req_1"}`)
	}
}

func sendReceipt(ctx context.Context) error {
	client, err := postroad.New(os.Getenv("POSTROAD_URL"), postroad.WithToken(os.Getenv("POSTROAD_API_KEY")))
	if err != nil {
		return err
	}
	invoice, err := postroad.AttachFile("invoice.pdf")
	if err != nil {
		return err
	}
	receipt, err := client.Send(ctx, postroad.Email{
		From:        "Shop <hello@example.com>",
		To:          []string{"ada@example.net"},
		Subject:     "Your receipt",
		Text:        "Thank you for your order.",
		Attachments: []postroad.Attachment{invoice},
	}, postroad.WithIdempotencyKey("order-1042-receipt"))
	if err != nil {
		return err
	}
	fmt.Println(receipt.ID, receipt.Status)

	message, err := client.Wait(ctx, receipt.ID, 5*time.Minute)
	if err != nil {
		return err
	}
	fmt.Println(message.Status) // delivered, partial or failed
	return nil
}

func Example() {
	folder, err := os.MkdirTemp("", "postroad")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	home, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	defer os.Chdir(home)
	if err := os.Chdir(folder); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("invoice.pdf", []byte("%PDF-"), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := sendReceipt(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// em_1 queued
	// delivered
}

func sendLater(ctx context.Context, client *postroad.Client) error {
	template := postroad.Object{"subject": "Hello {{name}}", "text": "Your cart waits."}
	if _, err := client.Templates().Save(ctx, "reminder", template); err != nil {
		return err
	}
	later := time.Now().Add(time.Hour)
	results, err := client.SendBatch(ctx, postroad.Batch{Emails: []postroad.Email{{
		From:      "hello@example.com",
		To:        []string{"ada@example.net"},
		Template:  "reminder",
		Variables: map[string]any{"name": "Ada"},
		SendAt:    &later,
		Metadata:  map[string]string{"order": "1042"},
	}}})
	if err != nil {
		return err
	}
	if _, err := client.Cancel(ctx, results[0].ID); err != nil {
		return err
	}
	messages := client.Messages().List(url.Values{"metadata": {"order:1042"}})
	for found, err := messages.Next(ctx); found != nil || err != nil; found, err = messages.Next(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(found["id"], found["status"])
	}
	return nil
}

func ExampleClient_SendBatch() {
	client, err := postroad.New(os.Getenv("POSTROAD_URL"), postroad.WithToken(os.Getenv("POSTROAD_API_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sendLater(context.Background(), client))
	// Output:
	// em_3 queued
	// <nil>
}

func sendAgain(ctx context.Context, client *postroad.Client, email postroad.Email) error {
	_, err := client.Send(ctx, email, postroad.WithIdempotencyKey("order-1043-receipt"))
	var failure *postroad.Error
	switch {
	case errors.Is(err, postroad.ErrInsufficientCredits):
		fmt.Println("Add credits, then send again.")
	case errors.As(err, &failure) && failure.IsRetryable():
		fmt.Println("Send again later, with the key", failure.IdempotencyKey)
	case err != nil:
		return err
	}
	return nil
}

func ExampleError() {
	client, err := postroad.New(os.Getenv("POSTROAD_URL"), postroad.WithCredential("smtp_1", "secret"))
	if err != nil {
		log.Fatal(err)
	}
	email := postroad.Email{From: "hello@example.com", To: []string{"poor@example.net"}, Subject: "Hello", Text: "Hi"}
	fmt.Println(sendAgain(context.Background(), client, email))
	_, err = client.Send(context.Background(), email)
	fmt.Println(err)
	// Output:
	// Add credits, then send again.
	// <nil>
	// postroad: 402 insufficient_credits: the account has no credits (req_1)
}

func handleWebhooks() {
	secrets := []string{os.Getenv("POSTROAD_WEBHOOK_SECRET")}
	http.Handle("/postroad", postroad.WebhookHandler(secrets, func(ctx context.Context, event *postroad.Event) error {
		fmt.Println(event.Type, event.Data.To) // The same event.ID can come twice.
		return nil
	}))
}

func ExampleWebhookHandler() {
	handleWebhooks()
	body := `{"id": "evt_1", "type": "email.delivered", "created_at": "2026-01-31T12:00:03Z", "data": {"to": "ada@example.net"}}`
	for _, secret := range []string{"whsec_example", "whsec_another"} {
		request := httptest.NewRequest(http.MethodPost, "/postroad", strings.NewReader(body))
		request.Header.Set("Service-Signature", sign(body, secret, time.Now()))
		response := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(response, request)
		fmt.Println(response.Code)
	}
	// Output:
	// email.delivered ada@example.net
	// 204
	// 400
}
