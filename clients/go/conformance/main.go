// Command conformance is the driver of the conformance suite: it reads calls, one JSON object a line, and writes one line for each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	postroad "github.com/postroad/postroad/clients/go"
)

// operation is a line of the input, with the members of all operations.
type operation struct {
	Operation      string        `json:"operation"`
	Client         clientOptions `json:"client"`
	Email          email         `json:"email"`
	IdempotencyKey *string       `json:"idempotency_key"`
	ID             string        `json:"id"`
	Body           []byte        `json:"body_base64"`
	Header         string        `json:"header"` // null leaves it empty, as http.Header.Get does for a header that is missing.
	Secret         string        `json:"secret"`
	Secrets        []string      `json:"secrets"`
	Timeout        float64       `json:"timeout"`
	Tolerance      float64       `json:"tolerance"`
	Now            int64         `json:"now"`
	resourceCall
}

// output is a line of the output: one of its members.
type output struct {
	Result  any        `json:"result,omitempty"`
	Error   *errorLine `json:"error,omitempty"`
	Refused string     `json:"refused,omitempty"`
}

func main() {
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answerAll(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	encoder := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		var op operation
		if err := json.Unmarshal(line, &op); err != nil {
			return err
		}
		result, err := perform(op)
		if err := encoder.Encode(describe(result, err)); err != nil {
			return err
		}
	}
}

func perform(op operation) (any, error) {
	switch op.Operation {
	case "verify":
		return postroad.VerifyAt(op.Body, op.Header, op.Secret, seconds(op.Tolerance), time.Unix(op.Now, 0)), nil
	case "parse_event":
		return eventLine(postroad.ParseEventAt(op.Body, op.Header, op.Secrets, seconds(op.Tolerance), time.Unix(op.Now, 0)))
	}
	client, err := op.Client.open()
	if err != nil {
		return nil, err
	}
	switch op.Operation {
	case "call":
		return op.resourceCall.perform(client)
	case "send":
		return send(client, op)
	case "get":
		return messageLine(client.Get(context.Background(), op.ID))
	case "wait":
		return messageLine(client.Wait(context.Background(), op.ID, seconds(op.Timeout)))
	}
	panic("no such operation: " + op.Operation)
}

func send(client *postroad.Client, op operation) (any, error) {
	email, err := op.Email.build()
	if err != nil {
		return nil, err
	}
	var options []postroad.SendOption
	if op.IdempotencyKey != nil {
		options = append(options, postroad.WithIdempotencyKey(*op.IdempotencyKey))
	}
	return client.Send(context.Background(), email, options...)
}

func describe(result any, err error) output {
	var failure *postroad.Error
	switch {
	case err == nil && result == nil:
		return output{Result: json.RawMessage("null")} // A nil would be left out.
	case err == nil:
		return output{Result: result}
	case errors.As(err, &failure):
		return output{Error: newErrorLine(failure)}
	default:
		return output{Refused: err.Error()}
	}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}
