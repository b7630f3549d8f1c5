// The options of a client, and what they may be.

package postroad

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Option changes a Client that is made by New.
type Option func(*settings)

type settings struct {
	credentials []credential
	httpClient  *http.Client
	timeout     time.Duration
	maxElapsed  time.Duration
}

// credential is how a request says who it is from, and what is wrong with that, if anything.
type credential struct {
	authorization string
	err           error
}

func (c credential) authorize(header http.Header) {
	header.Set("Authorization", c.authorization)
}

// WithToken uses an API key or a JWT.
func WithToken(token string) Option {
	c := credential{authorization: "Bearer " + token}
	if !isHeaderValue(token) {
		c.err = errors.New("postroad: a token must be printable ASCII, and not empty")
	}
	return func(s *settings) { s.credentials = append(s.credentials, c) }
}

// WithCredential uses the username and password of an SMTP credential.
func WithCredential(username, password string) Option {
	c := credential{authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))}
	if username == "" || password == "" || strings.Contains(username, ":") {
		c.err = errors.New("postroad: a credential needs a username and a password, and a username has no colon")
	}
	return func(s *settings) { s.credentials = append(s.credentials, c) }
}

// WithTimeout limits one attempt, from connecting to the last byte. It is 30 seconds otherwise.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.timeout = timeout }
}

// WithMaxElapsed limits a call as a whole, attempts and pauses. It is 60 seconds otherwise; 0 turns retries off.
func WithMaxElapsed(elapsed time.Duration) Option {
	return func(s *settings) { s.maxElapsed = elapsed }
}

// WithHTTPClient sends requests through a client of your own, for instance one whose Transport trusts another CA or uses a proxy.
// It is not changed, and redirects are not followed all the same. Without a Transport, it gets that of this package.
func WithHTTPClient(client *http.Client) Option {
	return func(s *settings) { s.httpClient = client }
}

func (s settings) check() error {
	if len(s.credentials) != 1 {
		return errors.New("postroad: give either WithToken or WithCredential")
	}
	if s.timeout <= 0 || s.maxElapsed < 0 {
		return errors.New("postroad: the timeout must be more than 0, and the elapsed time not less than 0")
	}
	return s.credentials[0].err
}

// newHTTPClient copies the given client, if there is one. Unlike http.DefaultTransport, its own uses no proxy of the environment.
func newHTTPClient(given *http.Client) *http.Client {
	var client http.Client
	if given != nil {
		client = *given
	}
	if client.Transport == nil {
		client.Transport = &http.Transport{
			DisableCompression:  true,
			IdleConnTimeout:     30 * time.Second,
			MaxIdleConnsPerHost: 16,
		}
	}
	client.Transport = noRedirects{client.Transport}
	return &client
}

// noRedirects sees to it that a credential goes to the host it was given for, and nowhere else. CheckRedirect is not enough:
// http.Client parses Location before it asks, and one that is no URL would become an error without the response.
type noRedirects struct{ next http.RoundTripper }

// unfollowed is the header under which a response keeps its Location.
const unfollowed = "Unfollowed-Location"

func (n noRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if location := response.Header.Get("Location"); location != "" {
		response.Header.Set(unfollowed, location)
		response.Header.Del("Location")
	}
	return response, nil
}
